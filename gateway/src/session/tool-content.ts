/** Converts results of tools to blocks for the model. PURE; accepts any JSON and trusts no shape. */
import { ERRORS } from "../../../protocol/gen/errors.ts";
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import type { ToolOutcome, ToolResultParams } from "../../../protocol/gen/types.ts";
import { ToolOutcomeValues } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { hideIn, hideTokens } from "../calls/secrets.ts";
import { runningProcess } from "../calls/processes.ts";
import { sentence } from "../ports/result.ts";
import type { ContentBlock } from "../ports/messages.ts";
import type { GsvError } from "../ports/result.ts";

export type Block = ContentBlock;
export interface ToolReport {
  readonly content: readonly Block[];
  readonly outcome: ToolOutcome;
  readonly reason?: string;
  /** The call's command goes on in the background, under this name. */
  readonly processId?: string;
}

/** Text as it is; `{content: [blocks]}` and lists of blocks as blocks; anything else as JSON. */
export function toContent(result: unknown): readonly Block[] {
  if (typeof result === "string") return [{ type: "text", text: result }];
  if (result === undefined || result === null) return [{ type: "text", text: "(no output)" }];
  const blocks = asBlocks(result) ?? (isJsonObject(result) ? asBlocks(result["content"]) : undefined);
  return blocks ?? [{ type: "text", text: JSON.stringify(result) ?? "(no output)" }];
}
function asBlocks(value: unknown): readonly Block[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const blocks = value.map(asBlock);
  return blocks.every((block) => block !== undefined) ? blocks : undefined;
}
function asBlock(value: unknown): Block | undefined {
  if (!isJsonObject(value)) return undefined;
  const { type, text, data, mimeType, r2Key } = value;
  if (type === "text" && typeof text === "string") return { type: "text", text };
  if (type === "image" && typeof data === "string" && typeof mimeType === "string") return { type: "image", data, mimeType };
  // The session checks later that the file exists and belongs to this call.
  if (type === "image" && typeof r2Key === "string" && r2Key.length <= 1024 && typeof mimeType === "string")
    return { type: "image", r2Key, mimeType };
  return undefined;
}

/** How a node's call ended. */
export function fromNode(result: ToolResultParams): ToolReport {
  const outcome = ToolOutcomeValues.find((known) => known === result.outcome) ?? (result.error === undefined ? "ok" : "error");
  const reason = result.reason === undefined ? {} : { reason: result.reason };
  const processId = outcome === "ok" ? runningProcess(result.result) : undefined;
  if (outcome === "ok") return { content: toContent(result.result), outcome, ...reason, ...(processId === undefined ? {} : { processId }) };
  const known = result.result === undefined ? [] : toContent(result.result);
  return { content: [{ type: "text", text: result.error ?? explain(outcome) }, ...known], outcome, ...reason };
}
const REASONS = {
  error: "tool.failed",
  cancelled: "tool.cancelled",
  timeout: "tool.timeout",
  unknown: "tool.outcome_unknown",
} as const satisfies Record<Exclude<ToolOutcome, "ok">, ErrorReason>;
function explain(outcome: Exclude<ToolOutcome, "ok">): string {
  const { text, hint } = ERRORS[REASONS[outcome]];
  return `${text} ${hint}`;
}

/** How a native call ended. `hide` removes stored secrets. */
export function fromNative(
  outcome: { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: GsvError },
  hide: (text: string) => string,
): ToolReport {
  const clean = (text: string): string => hideTokens(hide(text));
  if (outcome.ok) return { content: toContent(hideIn(outcome.result, clean)), outcome: "ok" };
  return { content: [{ type: "text", text: clean(sentence(outcome.error)) }], outcome: "error", reason: outcome.error.reason };
}
