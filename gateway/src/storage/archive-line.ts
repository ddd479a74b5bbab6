/**
 * A message as a line of a transcript: a valid message of pi-ai, whose usage has all counts and a cost. PURE. Lines of earlier versions
 * have the usage of the session log, and both forms are read.
 */
import type { Usage } from "../../../protocol/gen/types.ts";
import { isJsonObject, type JsonObject } from "../../../protocol/runtime/json-object.ts";
import type { Message } from "../ports/messages.ts";

export interface LineUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
  /** US dollars. Only the sum is known; 0 where the model has no price. */
  readonly cost: {
    readonly input: number;
    readonly output: number;
    readonly cacheRead: number;
    readonly cacheWrite: number;
    readonly total: number;
  };
}

export const lineUsage = ({ input, output, cacheRead = 0, cacheWrite = 0, total, costUsd = 0 }: Usage): LineUsage => ({
  input,
  output,
  cacheRead,
  cacheWrite,
  totalTokens: total,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: costUsd },
});

export const writeLine = (message: Message): string =>
  JSON.stringify(message.role === "assistant" ? { ...message, usage: lineUsage(message.usage) } : message);

/** The message of a line of any version. Throws where the line is not JSON. */
export function readLine(line: string): Message {
  const message = JSON.parse(line) as Message;
  return message.role === "assistant" ? { ...message, usage: logUsage(message.usage) } : message;
}
function logUsage(usage: unknown): Usage {
  const fields: JsonObject = isJsonObject(usage) ? usage : {};
  const count = (name: string): number => numberIn(fields, name) ?? 0;
  const cost = fields["cost"];
  const costUsd = numberIn(fields, "costUsd") ?? (isJsonObject(cost) ? numberIn(cost, "total") : undefined);
  return {
    input: count("input"),
    output: count("output"),
    cacheRead: count("cacheRead"),
    cacheWrite: count("cacheWrite"),
    total: numberIn(fields, "totalTokens") ?? count("total"),
    ...(costUsd === undefined || costUsd === 0 ? {} : { costUsd }),
  };
}
function numberIn(fields: JsonObject, name: string): number | undefined {
  const value = fields[name];
  return typeof value === "number" ? value : undefined;
}
