/**
 * The tools of a run: what the model is offered, and what its calls mean. Pure. A call names a tool exactly as it was offered;
 * anything else becomes an error that tells the model what is wrong (rule G4).
 */
import type { NodeEntry, ToolDefinition } from "../../../protocol/gen/types.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { ToolBinding } from "../ports/run-context.ts";
import type { SessionIdentity } from "../ports/session.ts";
import { INVALID_ARGUMENTS } from "../models/answer.ts";
import type { CallTarget } from "./machine/event.ts";
import { head } from "./machine/text.ts";

const SEPARATOR = "__";
const NATIVE = "gsv";
const MAX_PROBLEM_CHARS = 200;
const MAX_TIMEOUT_MS = 86_400_000;
/** For the way to the node and back, over what a command may take itself (G5). */
const BASH_MARGIN_MS = 5_000;

/** Sorted by name, so that the list is the same bytes at each call and providers can cache it. */
export function offeredTools(native: readonly ToolDefinition[], nodes: readonly ToolBinding[]): readonly ToolDefinition[] {
  const byName = new Map<string, ToolDefinition>();
  for (const definition of [...nodes.map((binding) => binding.definition), ...native]) byName.set(definition.name, definition);
  return [...byName.values()].sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
}

/** What a conversation has of the session's own tools. Which machines' tools it has is the gateway's to say. */
export const nativeFor = (
  identity: Pick<SessionIdentity, "isOwnersSession">,
  { definitions, forGuests }: Pick<NativeTools, "definitions" | "forGuests">,
): readonly ToolDefinition[] => (identity.isOwnersSession ? definitions : definitions.filter(({ name }) => forGuests.has(name)));

export interface ToolTable {
  /** The owner's own conversation; any other is told the same of what it may not use and of what there is not. */
  readonly own: boolean;
  readonly native: readonly ToolDefinition[];
  readonly tools: readonly ToolBinding[];
  readonly nodes: readonly NodeEntry[];
  /** `timeouts.toolMs`. */
  readonly toolMs: number;
}
export function resolveCall(name: string, args: unknown, { own: isOwn, native, tools, nodes, toolMs }: ToolTable): CallTarget {
  const own = native.find((definition) => definition.name === name);
  const timed = own ?? tools.find((binding) => binding.definition.name === name)?.definition;
  if (timed && (typeof args !== "object" || args === null || Array.isArray(args)))
    return { kind: "none", reason: "tool.bad_args", message: `Not run: the arguments of ${name} are not a JSON object.` };
  const raw: unknown = timed && Object.hasOwn(Object(args), INVALID_ARGUMENTS) ? Reflect.get(Object(args), INVALID_ARGUMENTS) : undefined;
  if (raw !== undefined)
    return {
      kind: "none",
      reason: "tool.bad_args",
      message: `Not run: the arguments of ${name} could not be read (${problemOf(String(raw))}). Write them again, as one JSON object.`,
    };
  if (own) {
    const timeoutMs = bounded(own.timeoutMs ?? toolMs);
    return { kind: "native", tool: own.name, idempotent: own.idempotent === true, timeoutMs, deadlineMs: timeoutMs };
  }
  const binding = tools.find((candidate) => candidate.definition.name === name);
  if (binding?.nodeId === undefined && !isOwn)
    return {
      kind: "none",
      reason: "auth.forbidden",
      message: `Not run: this conversation has no tool ${head(name, 128)}. Only the owner's own conversation has more tools than you were given here.`,
    };
  if (binding?.nodeId === undefined) return missing(name, nodes);
  const { definition, nodeId, ledger } = binding;
  const tool = name.slice(nodeId.length + SEPARATOR.length);
  return {
    kind: "node",
    nodeId,
    tool,
    ledger,
    idempotent: definition.idempotent === true,
    ...times(tool, args, definition.timeoutMs ?? toolMs),
  };
}
/** What is wrong with a text that should have been a JSON object. */
function problemOf(raw: string): string {
  try {
    const value: unknown = JSON.parse(raw);
    return `they are ${Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`}, not an object`;
  } catch (error) {
    return head(error instanceof Error ? error.message : "they are no JSON", MAX_PROBLEM_CHARS);
  }
}
function times(tool: string, args: unknown, configuredMs: number): { readonly timeoutMs: number; readonly deadlineMs: number } {
  const asked: unknown = tool === "Bash" && typeof args === "object" && args !== null ? Reflect.get(args, "timeout") : undefined;
  const wanted = typeof asked === "number" && Number.isFinite(asked) && asked > 0 ? Math.round(asked) : 0;
  const timeoutMs = bounded(Math.max(configuredMs, wanted));
  return { timeoutMs, deadlineMs: wanted > 0 ? bounded(Math.max(configuredMs, wanted + BASH_MARGIN_MS)) : timeoutMs };
}
const bounded = (ms: number): number => Math.min(MAX_TIMEOUT_MS, Math.max(1, ms));

function missing(name: string, nodes: readonly NodeEntry[]): CallTarget {
  const owner = nodes.find((node) => name.startsWith(node.nodeId + SEPARATOR));
  if (owner && !owner.online)
    return {
      kind: "none",
      reason: "node.offline",
      message: `The machine ${owner.nodeId} is not connected, so ${name} was not run. Tell the user to start \`gsv node\` there, or use another machine.`,
    };
  if (owner)
    return {
      kind: "none",
      reason: "tool.unknown",
      message: `The machine ${owner.nodeId} has no tool ${name.slice(owner.nodeId.length + SEPARATOR.length)}. It has: ${owner.tools.join(", ") || "none"}.`,
    };
  if (name.startsWith(NATIVE + SEPARATOR))
    return { kind: "none", reason: "tool.unknown", message: `There is no native tool ${name}. Use one of the tools that you were given.` };
  const online = nodes.filter((node) => node.online).map((node) => node.nodeId);
  return {
    kind: "none",
    reason: "tool.unknown",
    message: `There is no tool ${name}. Names are machine${SEPARATOR}Tool; connected machines: ${online.join(", ") || "none"}.`,
  };
}
