/**
 * Filters the byte stream between a provider and pi-ai: passes only complete, known events.
 *  - Arguments of tool calls come in thousands of small pieces, and pi-ai parses everything received so far at each piece.
 *    Partial arguments are not used, so the pieces are joined and passed on once: linear instead of quadratic work.
 *  - The end of an answer (`message_stop`, `[DONE]`) ends the stream, whatever a server sends or holds open after it.
 *  - Errors and invalid data inside a stream become faults with their data instead of a parser's message.
 * PURE: text in, text out. Must not depend on time, sockets or the answer's meaning.
 */
import type { ModelWire } from "../../../protocol/gen/types.ts";
import { isJsonObject, type JsonObject } from "../../../protocol/runtime/json-object.ts";
import { CallPieces, text } from "./call-pieces.ts";
import type { Fault } from "./failure.ts";

const ANTHROPIC_EVENTS = new Set([
  "message_start",
  "message_delta",
  "message_stop",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
]);
/** Events of OpenAI's responses API that are read here, and the ones that end an answer. */
const RESPONSES_READ = new Set(["error", "response.failed", "response.function_call_arguments.done", "response.output_item.done"]);
const RESPONSES_ENDS = new Set(["response.completed", "response.incomplete"]);
/** Limits for one event and for all arguments of an answer. */
const MAX_HELD_CHARS = 8 * 1024 * 1024;
/** What a line of an event is counted as, beside its characters. */
const LINE_CHARS = 16;

function parseRecord(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export class SseGuard {
  readonly #wire: ModelWire;
  readonly #onHeld: (length: number) => void;
  #rest: string[] = [];
  #restChars = 0;
  #argChars = 0;
  #event = "";
  #data: string[] = [];
  #dataChars = 0;
  #out: string[] = [];
  #finished = false;
  #stopSeen = false;
  #fault: Fault | undefined;
  #firstLine = true;
  /** Anthropic: pieces of arguments by block. */
  #held = new Map<number, string[]>();
  /** OpenAI: the tool calls so far. */
  readonly #calls = new CallPieces();
  /** OpenAI's responses: calls whose whole arguments were passed on. */
  #whole = new Set<number>();
  /** Data that a provider expects back with a call (Google's thought signatures), by the call's id. */
  readonly extras: ReadonlyMap<string, unknown> = this.#calls.extras;

  /** `onHeld`: gets the length of each piece of arguments as it comes. An answer that breaks off never passes the pieces on. */
  constructor(wire: ModelWire, onHeld: (length: number) => void = () => {}) {
    this.#wire = wire;
    this.#onHeld = onHeld;
  }
  /** The answer's end event was received. */
  get finished(): boolean {
    return this.#finished;
  }
  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** Takes decoded text and returns the events that are now complete, ready to pass on. */
  push(chunk: string): string[] {
    let from = 0;
    while (!this.#finished && this.#fault === undefined) {
      const end = chunk.indexOf("\n", from);
      if (end === -1) {
        const left = chunk.slice(from);
        if (left !== "") this.#rest.push(left);
        this.#hold(left.length);
        break;
      }
      let line = chunk.slice(from, end);
      if (this.#rest.length !== 0) {
        this.#rest.push(line);
        line = this.#rest.join("");
        this.#rest = [];
        this.#restChars = 0;
      }
      from = end + 1;
      this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
    }
    return this.#take();
  }
  /** The bytes ended. An event without its closing blank line still counts, as in pi-ai. */
  end(): string[] {
    if (!this.#finished && this.#fault === undefined) {
      if (this.#rest.length !== 0) this.#line(this.#rest.join("").replace(/\r$/, ""));
      this.#line("");
    }
    return this.#take();
  }
  #hold(chars: number): void {
    this.#restChars += chars;
    if (this.#restChars > MAX_HELD_CHARS) this.#fault = { kind: "too_large" };
  }
  #holdArgument(length: number, held = length): void {
    this.#argChars += held;
    this.#onHeld(length);
    if (this.#argChars > MAX_HELD_CHARS) this.#fault = { kind: "too_large" };
  }
  #take(): string[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #line(raw: string): void {
    let line = raw;
    if (this.#firstLine) {
      this.#firstLine = false;
      if (line.startsWith("\ufeff")) line = line.slice(1);
    }
    if (line === "") {
      const data = this.#data.join("\n");
      const event = this.#event;
      const empty = this.#data.length === 0;
      this.#event = "";
      this.#data = [];
      this.#dataChars = 0;
      if (!empty) {
        this.#dispatch(event, data);
      }
    } else if (line.startsWith("data:")) {
      // An entry of the list costs memory too, however short its line is.
      this.#dataChars += line.length + LINE_CHARS;
      if (this.#dataChars > MAX_HELD_CHARS) {
        this.#data = [];
        this.#fault = { kind: "too_large" };
        return;
      }
      this.#data.push(line.startsWith("data: ") ? line.slice(6) : line.slice(5));
    } else if (line.startsWith("event:")) {
      this.#event = line.slice(6).trim();
    }
  }

  #dispatch(event: string, data: string): void {
    switch (this.#wire) {
      case "anthropic-messages":
        return this.#anthropic(event, data);
      case "openai-responses":
      case "azure-openai-responses":
        return this.#responses(data);
      case "google-generative-ai":
      case "google-vertex":
        return this.#google(data);
      default:
        return this.#openai(event, data);
    }
  }
  #emit(event: string, data: string): void {
    const body = data.includes("\n") ? data.replaceAll("\n", "\ndata: ") : data;
    this.#out.push(event === "" ? `data: ${body}\n\n` : `event: ${event}\ndata: ${body}\n\n`);
  }

  // ---------------------------------------------------------------- Anthropic

  #anthropic(given: string, data: string): void {
    const event = given === "" ? (/^\s*\{\s*"type"\s*:\s*"([a-z_]+)"/.exec(data)?.[1] ?? "") : given;
    if (event === "error") {
      this.#fault = { kind: "in_band", body: data };
      return;
    }
    if (!ANTHROPIC_EVENTS.has(event)) return;
    if (event === "content_block_delta" && data.includes("input_json_delta")) {
      const parsed = parseRecord(data);
      const delta = parsed?.["delta"];
      if (!parsed || !isJsonObject(delta)) {
        this.#fault = { kind: "garbage" };
        return;
      }
      if (delta["type"] === "input_json_delta") {
        const index = typeof parsed["index"] === "number" ? parsed["index"] : 0;
        const piece = text(delta["partial_json"]);
        this.#holdArgument(piece.length);
        const pieces = this.#held.get(index);
        if (pieces) pieces.push(piece);
        else this.#held.set(index, [piece]);
        return;
      }
    }
    for (const [index, pieces] of this.#held) {
      this.#emit(
        "content_block_delta",
        JSON.stringify({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: pieces.join("") } }),
      );
    }
    this.#held.clear();
    this.#emit(event, data);
    if (event === "message_stop") this.#finished = true;
  }

  // ---------------------------------------------------------------- OpenAI's responses

  #responses(data: string): void {
    const event = data.trim();
    if (event.startsWith("[DONE]")) {
      this.#finished = true;
      return;
    }
    const type = /^\{\s*"type"\s*:\s*"([a-z_.]+)"/.exec(event)?.[1] ?? text(parseRecord(event)?.["type"]);
    // The whole arguments come at their end, so the pieces are only counted.
    if (type === "response.function_call_arguments.delta") {
      this.#holdArgument(text(parseRecord(event)?.["delta"]).length, event.length);
      return;
    }
    const parsed = RESPONSES_READ.has(type) ? parseRecord(event) : undefined;
    if (type === "" || (parsed === undefined && RESPONSES_READ.has(type))) {
      this.#fault = { kind: "garbage" };
      return;
    }
    if (type === "error" || type === "response.failed") {
      const response = parsed?.["response"];
      const error = isJsonObject(response) ? response["error"] : (parsed?.["error"] ?? parsed);
      const { code, message } = isJsonObject(error) ? error : {};
      this.#fault = { kind: "in_band", body: JSON.stringify({ error: { type: code, message } }) };
      return;
    }
    const index = typeof parsed?.["output_index"] === "number" ? parsed["output_index"] : 0;
    if (type === "response.function_call_arguments.done") this.#whole.add(index);
    const item = parsed?.["item"];
    if (type === "response.output_item.done" && isJsonObject(item) && item["type"] === "function_call" && !this.#whole.has(index)) {
      const whole = { type: "response.function_call_arguments.done", output_index: index, arguments: text(item["arguments"]) };
      this.#emit("", JSON.stringify(whole));
    }
    this.#emit("", event);
    if (RESPONSES_ENDS.has(type)) this.#finished = true;
  }

  // ---------------------------------------------------------------- Gemini

  #google(data: string): void {
    const chunk = parseRecord(data.trim());
    if (chunk === undefined) {
      this.#fault = { kind: "garbage" };
      return;
    }
    if (isJsonObject(chunk["error"])) {
      this.#fault = { kind: "in_band", body: JSON.stringify(chunk) };
      return;
    }
    this.#emit("", JSON.stringify(chunk));
  }

  // ---------------------------------------------------------------- OpenAI and compatible servers

  #openai(event: string, data: string): void {
    const trimmed = data.trim();
    if (trimmed.startsWith("[DONE]")) {
      this.#flushCalls();
      this.#emit("", "[DONE]");
      this.#finished = true;
      return;
    }
    if (!trimmed.startsWith("{")) {
      // Events after the stop reason are ignored, so they can't damage the answer.
      if (trimmed !== "" && !this.#stopSeen) this.#fault = { kind: "garbage" };
      return;
    }
    if (event === "error" || trimmed.includes('"error"')) {
      const parsed = parseRecord(trimmed);
      const error = parsed?.["error"];
      if (event === "error" || isJsonObject(error) || (typeof error === "string" && error !== "")) {
        this.#fault = { kind: "in_band", body: trimmed };
        return;
      }
    }
    const converted = this.#workersAi(trimmed);
    if (converted !== undefined) {
      if (converted !== "") this.#send(converted);
      return;
    }
    if (trimmed.includes('"tool_calls"') || trimmed.includes('"refusal":"')) {
      const parsed = parseRecord(trimmed);
      if (!parsed) {
        this.#fault = { kind: "garbage" };
        return;
      }
      const rest = this.#takeCalls(parsed);
      if (rest === undefined || this.#fault !== undefined) return;
      this.#send(JSON.stringify(rest));
      return;
    }
    this.#send(trimmed);
  }
  /** Older models of Workers AI answer `{"response": "text", "usage": ...}`. Undefined: the chunk is OpenAI's. */
  #workersAi(data: string): string | undefined {
    if (!data.startsWith('{"response"') && !data.startsWith('{"tool_calls"')) return undefined;
    const chunk = parseRecord(data);
    if (chunk === undefined || chunk["choices"] !== undefined) return undefined;
    const calls = (Array.isArray(chunk["tool_calls"]) ? chunk["tool_calls"] : []).filter(isJsonObject);
    for (const [index, call] of calls.entries())
      this.#call({ index: this.#calls.count + index, function: { name: call["name"], arguments: call["arguments"] } });
    const said = text(chunk["response"]);
    const { usage } = chunk;
    // These models send no reason for their end: the usage comes last.
    const ended = isJsonObject(usage) ? { finish_reason: this.#calls.count > 0 ? "tool_calls" : "stop" } : {};
    if (said === "" && !isJsonObject(usage)) return "";
    return JSON.stringify({ choices: [{ index: 0, delta: { content: said }, ...ended }], ...(isJsonObject(usage) ? { usage } : {}) });
  }
  #send(data: string): void {
    this.#flushCalls();
    if (/"finish_reason"\s*:\s*"/.test(data)) this.#stopSeen = true;
    this.#emit("", data);
  }

  /** Removes the tool calls from a chunk; returns the rest, or nothing when the rest is empty. */
  #takeCalls(chunk: JsonObject): JsonObject | undefined {
    const choices = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
    const choice: unknown = choices[0];
    if (!isJsonObject(choice) || !isJsonObject(choice["delta"])) return chunk;
    const { tool_calls: calls, ...rest } = choice["delta"];
    if (Array.isArray(calls)) for (const call of calls) if (isJsonObject(call)) this.#call(call);
    // A refusal is text for the person: show it instead of an empty answer.
    const refusal = text(rest["refusal"]);
    const delta: JsonObject = refusal !== "" && text(rest["content"]) === "" ? { ...rest, content: refusal } : rest;
    const speaks = Object.entries(delta).some(
      ([key, value]) => key !== "role" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
    );
    if (!speaks && !choice["finish_reason"] && !isJsonObject(chunk["usage"]) && !isJsonObject(choice["usage"])) return undefined;
    return { ...chunk, choices: [{ ...choice, delta }] };
  }

  #call(call: JsonObject): void {
    const piece = this.#calls.take(call);
    if (piece === undefined) this.#fault = { kind: "too_large" };
    else this.#holdArgument(piece.length);
  }
  #flushCalls(): void {
    const calls = this.#calls.flush();
    if (calls.length > 0) this.#emit("", JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: calls } }] }));
  }
}
