/** Whether a call is one that its tool offers. PURE. The owner is not asked about a call that is refused in any case. */
import type { NodeEntry, NodeSandbox } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { askedHosts, HOSTS, hasSandbox, notListed, SANDBOX } from "../policy/hosts.ts";
import { isInFileRoots } from "../policy/paths.ts";

interface Offered {
  readonly name: string;
  /** Its name on its machine. */
  readonly tool: string;
  /** As its machine or the gateway describes the tool. */
  readonly schema: unknown;
  readonly args: Readonly<Record<string, unknown>>;
  /** What its machine has reported. Undefined: it is a tool of the gateway. */
  readonly machine?: Machine | undefined;
  /** The machine is not connected, so that it may report something else when it takes the call. */
  readonly isAway?: boolean | undefined;
}
type Machine = Pick<NodeEntry, "sandbox" | "fileRoots" | "toolCapabilities">;

/** What the model is told. Undefined: the tool offers such a call. */
export function notOffered({ name, tool, schema, args, machine, isAway = false }: Offered): string | undefined {
  const outside = machine === undefined || isAway ? undefined : outsideOf(machine, tool, args);
  if (outside !== undefined) return outside;
  if (!isJsonObject(schema)) return undefined;
  const sandbox = machine?.sandbox?.profile;
  const missing = missingOf(schema, args);
  if (missing.length > 0)
    return `Not run: ${name} needs ${missing.map((one) => `\`${one}\``).join(", ")}. Make the call again with all of them.`;
  const properties = schema["properties"];
  const value = Object.hasOwn(args, SANDBOX) ? args[SANDBOX] : undefined;
  if (sandbox === "off" && (value === "workspace+net" || value === "read-only"))
    return `Not run: this machine has no sandbox, so \`${SANDBOX}\` can't be \`${value}\` there. Make the call again without \`${SANDBOX}\` and \`${HOSTS}\`.`;
  // A machine without a sandbox takes `off` and offers none; of one that describes no argument nothing is known.
  if (typeof value !== "string" || value === "read-only" || !hasSandbox(sandbox)) return undefined;
  if (!isJsonObject(properties) || Object.keys(properties).length === 0) return undefined;
  const offered = isJsonObject(properties[SANDBOX]) ? properties[SANDBOX]["enum"] : undefined;
  if (Array.isArray(offered) && offered.includes(value)) return isAway ? undefined : addressNotListed(machine?.sandbox, args);
  if (value !== "off" && value !== "workspace+net")
    return `Not run: ${name} takes no \`${SANDBOX}\` of \`${value.slice(0, 64)}\`. Make the call again without it${Array.isArray(offered) ? `, or with ${offered.join(" or ")}` : ""}.`;
  // Bubblewrap can let single hosts through, so it is the owner who lets none through. A command outside would reach every host.
  if (value === "workspace+net" && machine?.sandbox?.tier === "bubblewrap" && sandbox !== "strict" && Array.isArray(offered))
    return `Not run: the owner of the machine lets commands reach no hosts. Do it without the network, or ask the user to change \`network = "none"\` in node.toml there and to start the node again.`;
  // With Landlock alone no single host can be let through.
  const isOffOffered = value === "workspace+net" && Array.isArray(offered) && offered.includes("off");
  const instead = isOffOffered
    ? `For a command that needs the network, set \`${SANDBOX}\` to \`off\` and leave \`hosts\` out, which the user is asked about.`
    : `Make the call without it, or tell the user; \`gsv node sandbox\` on that machine tells why.`;
  const why =
    value === "off"
      ? "the owner of the machine lets no command leave its sandbox"
      : "the sandbox of the machine lets no command ask for hosts";
  return `Not run: ${why}, so \`${SANDBOX}\` can't be \`${value}\` there. ${instead}`;
}

/** For a person: which arguments the call lacks, and which the tool does not have. Undefined: it lacks none. */
export function missingText(name: string, schema: unknown, args: Offered["args"]): string | undefined {
  const missing = missingOf(schema, args);
  if (missing.length === 0) return undefined;
  const properties = isJsonObject(schema) ? schema["properties"] : undefined;
  const unknown = isJsonObject(properties) ? Object.keys(args).filter((one) => !Object.hasOwn(properties, one)) : [];
  const also = unknown.length === 0 ? "" : ` It does not have ${namesText(unknown)}: correct the name, or leave it out.`;
  return `The tool ${name} needs ${namesText(missing)}.${also}`;
}
function missingOf(schema: unknown, args: Offered["args"]): readonly string[] {
  const required = isJsonObject(schema) && Array.isArray(schema["required"]) ? schema["required"] : [];
  return required.filter((one): one is string => typeof one === "string" && !Object.hasOwn(args, one));
}
const namesText = (names: readonly string[]): string =>
  names
    .slice(0, SHOWN)
    .map((one) => `\`${one.slice(0, SHOWN_CHARS)}\``)
    .join(", ");

/** A file outside the only folder that the machine's tools for files use. */
function outsideOf({ fileRoots, toolCapabilities }: Machine, tool: string, args: Offered["args"]): string | undefined {
  const path = Object.hasOwn(args, "path") ? args["path"] : undefined;
  const usesFiles = Object.hasOwn(toolCapabilities, tool) && toolCapabilities[tool]?.some((one) => one.startsWith("filesystem."));
  const folder = fileRoots?.[0];
  if (typeof path !== "string" || folder === undefined || !usesFiles) return undefined;
  if (path.startsWith("~"))
    return `Not run: the tools for files do not expand \`~\`. Make the call again with the whole path, below ${JSON.stringify(folder)}.`;
  if (isInFileRoots(path, fileRoots ?? [])) return undefined;
  return `Not run: the file is outside of ${JSON.stringify(folder)}, and the machine's tools for files are limited to that folder. Make the call again with a path below it, or ask the user to start the node there again with \`--allow-outside\`.`;
}

/** Entries of a list that the model is told. */
const SHOWN = 10;
const SHOWN_CHARS = 64;
/** An address or `localhost` that the machine's owner has not listed (rule SB17). */
function addressNotListed(sandbox: NodeSandbox | undefined, args: Offered["args"]): string | undefined {
  const listed = sandbox?.addresses;
  const asked = askedHosts(args, sandbox?.profile);
  const refused = listed === undefined || asked === undefined ? [] : notListed(asked, listed);
  if (listed === undefined || refused.length === 0) return undefined;
  const more = listed.length > SHOWN ? ` and ${listed.length - SHOWN} more` : "";
  const has =
    listed.length === 0
      ? "No address is listed there: name another host,"
      : `Listed are ${listed.slice(0, SHOWN).join(", ")}${more}: name one of these exactly so, or another host,`;
  return `Not run: the owner of the machine has not listed ${refused.join(", ")}, and a command can ask for an address, or localhost, only as it is listed. ${has} or ask the user to add it to \`network\` in node.toml there and to start the node again. A server that the command itself starts is reached without \`hosts\`.`;
}
