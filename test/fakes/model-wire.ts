/**
 * The two wire formats of model providers, from the server's side: an answer as data becomes the events that Anthropic's
 * messages API or OpenAI's chat completions API would stream. PURE; for fakes only.
 */
export type Wire = "anthropic-messages" | "openai-completions";

export interface FakeToolCall {
  /** Absent: `call_<n>`, unique for this server. */
  readonly id?: string;
  readonly name: string;
  /** An object, or raw text for arguments that are not JSON. */
  readonly arguments?: Readonly<Record<string, unknown>> | string;
}
export interface FakeUsage {
  readonly input?: number;
  readonly output?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}
export type FakeStop = "end" | "tool" | "length" | "refusal" | "missing";
export interface FakeAnswer {
  /** Text, in the pieces in which it is sent. */
  readonly text?: string | readonly string[];
  readonly thinking?: string;
  readonly toolCalls?: readonly FakeToolCall[];
  /** Absent: `tool` with tool calls, else `end`. */
  readonly stop?: FakeStop;
  readonly usage?: FakeUsage;
}

/** One server-sent event and its kind, so that faults can be placed. */
export interface WireEvent {
  readonly bytes: string;
  readonly kind: "start" | "text" | "thinking" | "args" | "block" | "stop" | "end";
}
const ARG_PIECE = 7;
export const pieces = (text: string, size: number): string[] => {
  const out: string[] = [];
  for (let i = 0; i < text.length; i += size) out.push(text.slice(i, i + size));
  return out;
};
const textPieces = (text: FakeAnswer["text"]): readonly string[] =>
  text === undefined ? [] : typeof text === "string" ? (text === "" ? [] : (text.match(/\S+\s*|\s+/g) ?? [text])) : text;
const rawArguments = (call: FakeToolCall): string =>
  typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {});
const stopOf = (answer: FakeAnswer): FakeStop => answer.stop ?? ((answer.toolCalls?.length ?? 0) > 0 ? "tool" : "end");

export function anthropicEvents(answer: FakeAnswer, model: string, ids: () => string): WireEvent[] {
  const out: WireEvent[] = [];
  const send = (kind: WireEvent["kind"], type: string, data: Record<string, unknown> = {}): void => {
    out.push({ kind, bytes: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n` });
  };
  const usage = answer.usage ?? {};
  send("start", "message_start", {
    message: {
      id: ids(),
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      usage: {
        input_tokens: usage.input ?? 10,
        output_tokens: 1,
        cache_read_input_tokens: usage.cacheRead ?? 0,
        cache_creation_input_tokens: usage.cacheWrite ?? 0,
      },
    },
  });
  send("start", "ping");
  let index = 0;
  if (answer.thinking !== undefined) {
    send("block", "content_block_start", { index, content_block: { type: "thinking", thinking: "", signature: "" } });
    send("thinking", "content_block_delta", { index, delta: { type: "thinking_delta", thinking: answer.thinking } });
    send("thinking", "content_block_delta", { index, delta: { type: "signature_delta", signature: "c2lnbmF0dXJl" } });
    send("block", "content_block_stop", { index });
    index++;
  }
  const texts = textPieces(answer.text);
  if (texts.length > 0) {
    send("block", "content_block_start", { index, content_block: { type: "text", text: "" } });
    for (const piece of texts) send("text", "content_block_delta", { index, delta: { type: "text_delta", text: piece } });
    send("block", "content_block_stop", { index });
    index++;
  }
  for (const call of answer.toolCalls ?? []) {
    send("block", "content_block_start", { index, content_block: { type: "tool_use", id: call.id ?? ids(), name: call.name, input: {} } });
    for (const piece of pieces(rawArguments(call), ARG_PIECE))
      send("args", "content_block_delta", { index, delta: { type: "input_json_delta", partial_json: piece } });
    send("block", "content_block_stop", { index });
    index++;
  }
  const stop = stopOf(answer);
  if (stop !== "missing") {
    const reason = { end: "end_turn", tool: "tool_use", length: "max_tokens", refusal: "refusal" }[stop];
    send("stop", "message_delta", { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: usage.output ?? 5 } });
    send("end", "message_stop");
  }
  return out;
}

export function openaiEvents(answer: FakeAnswer, model: string, ids: () => string): WireEvent[] {
  const out: WireEvent[] = [];
  const id = `chatcmpl-${ids()}`;
  const send = (kind: WireEvent["kind"], delta: Record<string, unknown>, more: Record<string, unknown> = {}): void => {
    out.push({
      kind,
      bytes: `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 1, model, choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`,
    });
  };
  send("start", { role: "assistant", content: "" });
  if (answer.thinking !== undefined) send("thinking", { reasoning_content: answer.thinking });
  for (const piece of textPieces(answer.text)) send("text", { content: piece });
  for (const [index, call] of (answer.toolCalls ?? []).entries()) {
    send("block", { tool_calls: [{ index, id: call.id ?? ids(), type: "function", function: { name: call.name, arguments: "" } }] });
    for (const piece of pieces(rawArguments(call), ARG_PIECE)) send("args", { tool_calls: [{ index, function: { arguments: piece } }] });
  }
  const stop = stopOf(answer);
  if (stop !== "missing") {
    send("stop", {}, { finish_reason: { end: "stop", tool: "tool_calls", length: "length", refusal: "content_filter" }[stop] });
    const usage = answer.usage ?? {};
    const [input, output, cached] = [usage.input ?? 10, usage.output ?? 5, usage.cacheRead ?? 0];
    out.push({
      kind: "stop",
      bytes: `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 1, model, choices: [], usage: { prompt_tokens: input + cached, completion_tokens: output, total_tokens: input + cached + output, prompt_tokens_details: { cached_tokens: cached } } })}\n\n`,
    });
    out.push({ kind: "end", bytes: "data: [DONE]\n\n" });
  }
  return out;
}

/** The body that a provider sends with an HTTP error. */
export function errorBody(wire: Wire, status: number, message: string): string {
  const anthropic: Record<number, string> = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
  };
  if (wire === "anthropic-messages") return JSON.stringify({ type: "error", error: { type: anthropic[status] ?? "api_error", message } });
  return JSON.stringify({
    error: { message, type: status >= 500 ? "server_error" : "invalid_request_error", code: status === 429 ? "rate_limit_exceeded" : null },
  });
}
