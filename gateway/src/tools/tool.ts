/** Defines a native tool: its definition, policy class, whether guests may use it, its arguments, and the function that runs it. */
import type { PolicyClass, ToolDefinition } from "../../../protocol/gen/types.ts";
import type { AgentFiles } from "../ports/agent-files.ts";
import type { FilePreview, NativeOutcome, NativeToolContext } from "../ports/native-tools.ts";
import type { Failure, GsvError, Result } from "../ports/result.ts";
import type { SessionIdentity } from "../ports/session.ts";
import type { GuestAllowance } from "../ports/tool-entry.ts";
import { type Arguments, type Fields, readArguments, requiredNames, type ValuesOf } from "./arguments.ts";

export type Outcome = NativeOutcome;
export interface Tool {
  readonly definition: ToolDefinition;
  readonly policyClass: PolicyClass;
  readonly guests: GuestAllowance;
  /** No model and no client is offered it: other tools stand for it. */
  readonly isInner?: true;
  /** Offered only to a run that has tools of a machine: without one it can do nothing, and its description costs tokens. */
  readonly needsMachine?: true;
  readonly run: (args: Arguments, context: NativeToolContext, files: AgentFiles) => Promise<Outcome>;
  /** Why the call of the agent is refused in any case, by its arguments alone (rule AP17). Pure. */
  readonly problem?: (args: Arguments, agentId: string) => GsvError | undefined;
  readonly preview?: (args: Arguments, identity: SessionIdentity, files: AgentFiles) => Promise<Result<FilePreview>>;
}
export const MAX_PATH_CHARS = 1024;

export const denied = (message: string): Outcome => ({ ok: false, error: { reason: "auth.forbidden", message } });
export const outcome = <T>(result: Result<T>, shape: (value: T) => unknown = (value) => value): Outcome =>
  result.ok ? { ok: true, result: shape(result.value) } : result;

export interface ToolSpec<S extends Fields> {
  /** As the model sees it, with the prefix `gsv__`. */
  readonly name: string;
  /** For the model: what the tool does, in plain words. */
  readonly description: string;
  readonly policyClass: PolicyClass;
  /** Absent: `none`. A tool that guests may use must be harmless to the owner in a guest's session. */
  readonly guests?: "always";
  readonly timeoutMs?: number;
  readonly isInner?: true;
  readonly needsMachine?: true;
  /** JSON Schema by argument. An argument without one is read and not advertised: another argument says the same. */
  readonly properties: Readonly<Partial<Record<keyof S, object>>>;
}
/** A native tool. All of them are safe to run again with the same call id (promises P8), so their definitions are idempotent. */
export function tool<S extends Fields>(
  { name, description, policyClass, guests, timeoutMs, isInner, needsMachine, properties }: ToolSpec<NoInfer<S>>,
  fields: S,
  run: (args: ValuesOf<S>, context: NativeToolContext, files: AgentFiles) => Promise<Outcome>,
  {
    change,
    refused,
  }: {
    readonly change?: (args: NoInfer<ValuesOf<S>>) => PreviewedChange;
    /** What `run` refuses whatever the state of GSV is. */
    readonly refused?: (args: NoInfer<ValuesOf<S>>, agentId: string) => Failure | undefined;
  } = {},
): Tool {
  return {
    definition: {
      name,
      description,
      inputSchema: { type: "object", properties, required: requiredNames(fields) },
      idempotent: true,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
    policyClass,
    guests: guests ?? "none",
    ...(isInner === undefined ? {} : { isInner }),
    ...(needsMachine === undefined ? {} : { needsMachine }),
    problem(args, agentId) {
      const read = readArguments(args, fields);
      return read.ok ? refused?.(read.value, agentId)?.error : read.error;
    },
    async run(args, context, files) {
      const read = readArguments(args, fields);
      return read.ok ? run(read.value, context, files) : read;
    },
    ...(change === undefined
      ? {}
      : {
          async preview(args, identity, files) {
            const read = readArguments(args, fields);
            return read.ok ? previewOf(change(read.value), identity, files) : read;
          },
        }),
  };
}
/** One file, and what becomes of its content. */
export interface PreviewedChange {
  readonly path: string;
  readonly next: (current: string | undefined) => Result<string | undefined>;
}
async function previewOf({ path, next }: PreviewedChange, { agentId }: SessionIdentity, files: AgentFiles): Promise<Result<FilePreview>> {
  const own = await files.own(agentId, path);
  if (!own.ok) return own;
  const before = own.value?.content;
  const after = next(before);
  return after.ok ? { ok: true, value: { path, before, after: after.value, etag: own.value?.etag ?? "absent" } } : after;
}
