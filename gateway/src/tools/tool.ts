/** What one native tool is made of: its definition, its arguments, what it does. Decides nothing. */
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import type { NativeToolContext } from "../ports/native-tools.ts";
import type { GsvError, Result } from "../ports/result.ts";
import { type Arguments, readArguments } from "./arguments.ts";
import type { Files } from "../features/workspace/tool-files.ts";

export type Outcome = { ok: true; result: unknown } | { ok: false; error: GsvError };
export interface Tool {
  readonly definition: ToolDefinition;
  /** Conversations other than the owner's have it too (promises S8, X7): what it does there is harmless to the owner. */
  readonly forGuests: boolean;
  readonly run: (args: Arguments, context: NativeToolContext, files: Files) => Promise<Outcome>;
}
export const MAX_PATH_CHARS = 1024;

export const denied = (message: string): Outcome => ({ ok: false, error: { reason: "auth.forbidden", message } });
/** Kept with what a run writes, so that its versions say who wrote them. */
export const writer = (identity: NativeToolContext["identity"]): { by: string } => ({ by: `agent:${identity.key}` });
export const outcome = <T>(result: Result<T>, shape: (value: T) => unknown = (value) => value): Outcome =>
  result.ok ? { ok: true, result: shape(result.value) } : result;

/** `name` with its prefix. All native tools are safe to run again with the same callId. */
export function tool<S extends Parameters<typeof readArguments>[1]>(
  name: string,
  description: string,
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[],
  shape: S,
  run: (
    args: Extract<ReturnType<typeof readArguments<S>>, { ok: true }>["value"],
    context: NativeToolContext,
    files: Files,
  ) => Promise<Outcome>,
  { forGuests = false, ...more }: Pick<ToolDefinition, "timeoutMs"> & { readonly forGuests?: boolean } = {},
): Tool {
  return {
    forGuests,
    definition: { name, description, inputSchema: { type: "object", properties, required }, idempotent: true, ...more },
    async run(args, context, files) {
      const read = readArguments(args, shape);
      return read.ok ? run(read.value, context, files) : read;
    },
  };
}
