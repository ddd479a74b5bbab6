/** The names under which a model sees tools, `{nodeId}__{Tool}` and `gsv__{Tool}`, and back (gateway rule G4). Pure. */

export const SEPARATOR = "__";
export const NATIVE = "gsv";

export const qualifiedName = (owner: string, tool: string): string => `${owner}${SEPARATOR}${tool}`;

export interface ToolAddress {
  /** A node's id, or `gsv`. */
  readonly owner: string;
  readonly tool: string;
}

/**
 * Splits at the first `__` whose left side owns a tool of the name on its right; else at the first whose left side is known at
 * all, so that the answer can say which machine lacks the tool. Node ids and tool names may contain `__` themselves.
 */
export function splitToolName(
  name: string,
  owns: (owner: string, tool: string) => boolean,
  isKnown: (owner: string) => boolean,
): ToolAddress | undefined {
  let known: ToolAddress | undefined;
  for (let at = name.indexOf(SEPARATOR, 1); at > 0; at = name.indexOf(SEPARATOR, at + 1)) {
    const address: ToolAddress = { owner: name.slice(0, at), tool: name.slice(at + SEPARATOR.length) };
    if (address.tool === "") continue;
    if (owns(address.owner, address.tool)) return address;
    if (known === undefined && isKnown(address.owner)) known = address;
  }
  return known;
}
