/**
 * The tool registry: every tool that a session or a client can call, by its full name. PURE. Native tools are composed once and
 * closed; the tools of machines are added to a copy for one run or one request. Runs no tool, and derives nothing from a name.
 */
import { policyClassOf } from "../../../protocol/gen/lookups.ts";
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import type { ToolEntry } from "../ports/tool-entry.ts";
import { withWait } from "../calls/wait.ts";
import type { Tool } from "./tool.ts";

/** Between a machine's id and the name of its tool. */
export const SEPARATOR = "__";
/** Stands where a machine's id would, in the names of most native tools. No machine may have it as its id. */
export const NATIVE_PREFIX = `gsv${SEPARATOR}`;
/** Whether a machine can have this name by its characters. Which names a new machine may have: `kernel/machine-name.ts`. */
export const isMachineName = (text: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(text);

/** A native tool and the feature that registered it. */
export interface NativeTool {
  readonly entry: ToolEntry;
  readonly run: Tool["run"];
  readonly problem?: NonNullable<Tool["problem"]>;
  readonly isInner?: true;
  readonly preview?: Tool["preview"];
}

/** Collects the native tools while the program is composed. Mistakes throw, because they are bugs. */
export class NativeToolList {
  readonly #tools = new Map<string, NativeTool>();
  #isClosed = false;

  /** Throws for a name that is taken or reserved for machines, and after `close`. */
  add(feature: string, tools: readonly Tool[]): this {
    for (const { definition, policyClass, guests, run, problem, isInner, needsMachine, preview } of tools) {
      const { name } = definition;
      if (this.#isClosed) throw new Error(`The tool registry is closed: ${feature} cannot add ${name}.`);
      if (this.#tools.has(name)) throw new Error(`The tool ${name} is registered twice, the second time by ${feature}.`);
      if (name.includes(SEPARATOR) && !name.startsWith(NATIVE_PREFIX))
        throw new Error(`The tool name ${name} is reserved for a machine: native names start with ${NATIVE_PREFIX}.`);
      const entry: ToolEntry = {
        ...{ definition, target: { kind: "native" }, tool: name, feature, policyClass, guests, ledger: true },
        ...(needsMachine === undefined ? {} : { needsMachine }),
      };
      this.#tools.set(name, {
        entry: Object.freeze(entry),
        run,
        ...(problem ? { problem } : {}),
        ...(isInner ? { isInner } : {}),
        ...(preview ? { preview } : {}),
      });
    }
    return this;
  }
  /** In the order of registration. */
  close(): readonly NativeTool[] {
    this.#isClosed = true;
    return Object.freeze([...this.#tools.values()]);
  }
}

/** Immutable. Of two entries with one name the first keeps it, and the other cannot be called. */
export class ToolRegistry {
  /** Sorted by name, so that the list for the model is the same bytes each time and providers can cache it. */
  readonly entries: readonly ToolEntry[];
  readonly #byName: ReadonlyMap<string, ToolEntry>;

  constructor(...lists: readonly (readonly ToolEntry[])[]) {
    const byName = new Map<string, ToolEntry>();
    for (const entry of lists.flat()) if (!byName.has(entry.definition.name)) byName.set(entry.definition.name, entry);
    this.#byName = byName;
    this.entries = [...byName.keys()].sort().flatMap((name) => byName.get(name) ?? []);
  }
  /** By the exact full name. */
  find(name: string): ToolEntry | undefined {
    return this.#byName.get(name);
  }
  get definitions(): readonly ToolDefinition[] {
    return this.entries.map(({ definition }) => definition);
  }
}

/** What a session may use: all of it, or what its owner allows guests. */
export interface ToolAccess {
  /** The session is the owner's own. */
  readonly isOwners: boolean;
  /** Whether the owner opened a machine's tool, by its full name, on the session's channel. */
  readonly isOpened: (name: string) => boolean;
}
export const mayUse = ({ definition, guests }: ToolEntry, { isOwners, isOpened }: ToolAccess): boolean =>
  isOwners || guests === "always" || (guests === "opened" && isOpened(definition.name));

/** What one machine offers. */
export interface MachineTools {
  readonly nodeId: string;
  readonly tools: readonly ToolDefinition[];
  /** It starts a call id at most once. */
  readonly ledger: boolean;
}
/**
 * Entries for the tools of machines, machines in the order of their ids. Machine `a` with a tool `b__Bash` and machine `a__b` with a
 * tool `Bash` give one name: in a registry the first has it, so neither can take the other's calls.
 */
export function machineEntries(machines: readonly MachineTools[]): readonly ToolEntry[] {
  const byId = new Map(machines.map((machine) => [machine.nodeId, machine]));
  const sorted = [...byId.keys()].sort().flatMap((nodeId) => byId.get(nodeId) ?? []);
  return sorted.flatMap(({ nodeId, tools, ledger }) =>
    tools.map(
      (definition): ToolEntry => ({
        definition: { ...definition, name: machineToolName(nodeId, definition.name) },
        target: { kind: "node", nodeId },
        tool: definition.name,
        feature: "nodes",
        // By the name alone: a machine cannot choose the class of its tools.
        policyClass: policyClassOf(definition.name),
        guests: "opened",
        ledger,
        ...(definition.name === "Bash" ? { timeoutArgument: "timeout" } : {}),
      }),
    ),
  );
}
/** The tools of machines that are not connected. Each has an argument that lets a call wait for its machine. */
export const awayEntries = (machines: readonly MachineTools[]): readonly ToolEntry[] =>
  machineEntries(machines).map(({ definition, ...entry }) => ({
    ...entry,
    definition: { ...definition, inputSchema: withWait(definition.inputSchema) },
    isAway: true,
  }));
export const machineToolName = (nodeId: string, tool: string): string => `${nodeId}${SEPARATOR}${tool}`;
/** The opposite of `machineToolName`. */
export const bareToolName = (nodeId: string, name: string): string => name.slice(nodeId.length + SEPARATOR.length);
/** For an error's text: the machine that a name without a tool seems to mean. The shortest id that fits. */
export function machineOf<N extends { readonly nodeId: string }>(name: string, nodes: readonly N[]): N | undefined {
  const fitting = nodes.filter(({ nodeId }) => name.startsWith(nodeId + SEPARATOR));
  return fitting.sort((left, right) => left.nodeId.length - right.nodeId.length)[0];
}
