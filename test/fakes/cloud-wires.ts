/**
 * More wire formats of model providers, from the server's side: OpenAI's responses, Gemini, and Bedrock's binary frames. An answer as
 * data becomes what these services would stream. PURE; for fakes only.
 */
import { crc32 } from "node:zlib";
import { type FakeAnswer, type FakeToolCall, pieces } from "./model-wire.ts";

export type CloudWire = "openai-responses" | "google-generative-ai" | "mistral-conversations" | "bedrock-converse-stream";

const words = (text: FakeAnswer["text"]): readonly string[] =>
  text === undefined ? [] : typeof text === "string" ? (text.match(/\S+\s*|\s+/g) ?? []) : text;
const rawArguments = ({ arguments: given }: FakeToolCall): string => (typeof given === "string" ? given : JSON.stringify(given ?? {}));
const counts = ({ usage = {} }: FakeAnswer): { input: number; output: number; cached: number } => ({
  input: usage.input ?? 10,
  output: usage.output ?? 5,
  cached: usage.cacheRead ?? 0,
});

export function responsesEvents(answer: FakeAnswer, model: string, ids: () => string): string[] {
  const out: string[] = [];
  const send = (type: string, data: Record<string, unknown>): void => {
    out.push(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: out.length, ...data })}\n\n`);
  };
  const response = { id: `resp_${ids()}`, object: "response", model, status: "in_progress", output: [] as unknown[] };
  send("response.created", { response });
  let index = 0;
  if (answer.thinking !== undefined) {
    const item = { id: `rs_${ids()}`, type: "reasoning", summary: [] as unknown[] };
    send("response.output_item.added", { output_index: index, item });
    send("response.reasoning_summary_part.added", { output_index: index, summary_index: 0, part: { type: "summary_text", text: "" } });
    send("response.reasoning_summary_text.delta", { output_index: index, summary_index: 0, delta: answer.thinking });
    const done = { ...item, summary: [{ type: "summary_text", text: answer.thinking }] };
    send("response.output_item.done", { output_index: index, item: done });
    index++;
  }
  const texts = words(answer.text);
  if (texts.length > 0) {
    const item = { id: `msg_${ids()}`, type: "message", role: "assistant", status: "in_progress", content: [] as unknown[] };
    send("response.output_item.added", { output_index: index, item });
    send("response.content_part.added", {
      output_index: index,
      content_index: 0,
      part: { type: "output_text", text: "", annotations: [] },
    });
    for (const delta of texts) send("response.output_text.delta", { output_index: index, content_index: 0, delta });
    const content = [{ type: "output_text", text: texts.join(""), annotations: [] }];
    send("response.output_item.done", { output_index: index, item: { ...item, status: "completed", content } });
    index++;
  }
  for (const call of answer.toolCalls ?? []) {
    const whole = rawArguments(call);
    const item = {
      id: `fc_${ids()}`,
      type: "function_call",
      call_id: call.id ?? ids(),
      name: call.name,
      arguments: "",
      status: "in_progress",
    };
    send("response.output_item.added", { output_index: index, item });
    for (const delta of pieces(whole, 7)) send("response.function_call_arguments.delta", { output_index: index, item_id: item.id, delta });
    send("response.function_call_arguments.done", { output_index: index, item_id: item.id, arguments: whole });
    send("response.output_item.done", { output_index: index, item: { ...item, arguments: whole, status: "completed" } });
    index++;
  }
  if (answer.stop === "missing") return out;
  const { input, output, cached } = counts(answer);
  const isCut = answer.stop === "length";
  send(isCut ? "response.incomplete" : "response.completed", {
    response: {
      ...response,
      status: isCut ? "incomplete" : "completed",
      ...(isCut ? { incomplete_details: { reason: "max_output_tokens" } } : {}),
      usage: {
        input_tokens: input + cached,
        input_tokens_details: { cached_tokens: cached },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input + cached + output,
      },
    },
  });
  return out;
}

export function geminiEvents(answer: FakeAnswer, model: string, ids: () => string): string[] {
  const out: string[] = [];
  const responseId = ids();
  const send = (parts: readonly unknown[], more: Record<string, unknown> = {}, usage: Record<string, unknown> = {}): void => {
    const candidate = { content: { role: "model", parts }, index: 0, ...more };
    out.push(`data: ${JSON.stringify({ candidates: [candidate], modelVersion: model, responseId, ...usage })}\r\n\r\n`);
  };
  if (answer.thinking !== undefined) send([{ text: answer.thinking, thought: true }]);
  for (const text of words(answer.text)) send([{ text }]);
  for (const call of answer.toolCalls ?? [])
    send([{ functionCall: { name: call.name, args: JSON.parse(rawArguments(call)) as unknown }, thoughtSignature: "c2lnbmF0dXJl" }]);
  if (answer.stop === "missing") return out;
  const { input, output, cached } = counts(answer);
  send(
    [{ text: "" }],
    { finishReason: answer.stop === "length" ? "MAX_TOKENS" : "STOP" },
    {
      usageMetadata: {
        promptTokenCount: input + cached,
        cachedContentTokenCount: cached,
        candidatesTokenCount: output,
        totalTokenCount: input + cached + output,
      },
    },
  );
  return out;
}

/** One message of AWS's event stream: lengths, their checksum, headers, payload, the checksum of all. */
function frame(headers: Readonly<Record<string, string>>, payload: unknown): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return [Buffer.of(Buffer.byteLength(name)), Buffer.from(name), Buffer.of(7), length, Buffer.from(value)];
    }),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const lengths = Buffer.alloc(12);
  lengths.writeUInt32BE(16 + head.length + body.length, 0);
  lengths.writeUInt32BE(head.length, 4);
  lengths.writeUInt32BE(crc32(lengths.subarray(0, 8)), 8);
  const message = Buffer.concat([lengths, head, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(message));
  return Buffer.concat([message, end]);
}
export const bedrockError = (type: string, message: string): Buffer =>
  frame({ ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" }, { message });

export function bedrockFrames(answer: FakeAnswer, _model: string, ids: () => string): Buffer[] {
  const out: Buffer[] = [];
  const send = (type: string, payload: unknown): void => {
    out.push(frame({ ":event-type": type, ":content-type": "application/json", ":message-type": "event" }, payload));
  };
  let contentBlockIndex = 0;
  send("messageStart", { role: "assistant" });
  if (answer.thinking !== undefined) {
    send("contentBlockDelta", { contentBlockIndex, delta: { reasoningContent: { text: answer.thinking } } });
    send("contentBlockDelta", { contentBlockIndex, delta: { reasoningContent: { signature: "c2lnbmF0dXJl" } } });
    send("contentBlockStop", { contentBlockIndex: contentBlockIndex++ });
  }
  const texts = words(answer.text);
  for (const text of texts) send("contentBlockDelta", { contentBlockIndex, delta: { text } });
  if (texts.length > 0) send("contentBlockStop", { contentBlockIndex: contentBlockIndex++ });
  for (const call of answer.toolCalls ?? []) {
    send("contentBlockStart", { contentBlockIndex, start: { toolUse: { toolUseId: call.id ?? ids(), name: call.name } } });
    for (const input of pieces(rawArguments(call), 7)) send("contentBlockDelta", { contentBlockIndex, delta: { toolUse: { input } } });
    send("contentBlockStop", { contentBlockIndex: contentBlockIndex++ });
  }
  if (answer.stop === "missing") return out;
  send("messageStop", {
    stopReason: answer.stop === "length" ? "max_tokens" : (answer.toolCalls?.length ?? 0) > 0 ? "tool_use" : "end_turn",
  });
  const { input, output, cached } = counts(answer);
  send("metadata", {
    usage: { inputTokens: input, outputTokens: output, totalTokens: input + output + cached, cacheReadInputTokens: cached },
    metrics: { latencyMs: 1 },
  });
  return out;
}
