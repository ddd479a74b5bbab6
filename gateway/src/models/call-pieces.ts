/**
 * The tool calls of one answer of OpenAI or a compatible server, joined from their pieces. Some servers reuse or omit the ids and indexes of
 * calls: each call gets its own index and an id that is unique in the answer. PURE.
 */
import { isJsonObject, type JsonObject } from "../../../protocol/runtime/json-object.ts";

const MAX_CALLS = 1024;

/** The value when it is a text, else the empty one. */
export const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A partly received call. */
interface Slot {
  readonly index: number;
  /** The id that the server sent, to recognise later pieces. */
  readonly sourceId: string;
  /** Unique in this answer. */
  readonly id: string;
  name: string;
  announced: boolean;
  pieces: string[];
}

export class CallPieces {
  readonly #slots: Slot[] = [];
  readonly #byIndex = new Map<number, Slot>();
  readonly #bySourceId = new Map<string, Slot>();
  readonly #ids = new Set<string>();
  readonly #pending = new Set<Slot>();
  /** Data that a provider expects back with a call (Google's thought signatures), by the call's id. */
  readonly extras = new Map<string, unknown>();

  get count(): number {
    return this.#slots.length;
  }

  /** Returns the piece of arguments that came; undefined: there are too many calls. */
  take(call: JsonObject): string | undefined {
    const made = isJsonObject(call["function"]) ? call["function"] : {};
    const index = typeof call["index"] === "number" ? call["index"] : undefined;
    const sourceId = text(call["id"]);
    const name = text(made["name"]);
    let slot = index === undefined ? undefined : this.#byIndex.get(index);
    if (slot && sourceId !== "" && name !== "" && slot.sourceId !== "" && slot.sourceId !== sourceId) slot = undefined;
    if (index === undefined) slot = sourceId === "" ? (name === "" ? this.#slots.at(-1) : undefined) : this.#bySourceId.get(sourceId);
    if (!slot) {
      if (this.#slots.length >= MAX_CALLS) return undefined;
      slot = this.#add(sourceId, name);
      if (index !== undefined) this.#byIndex.set(index, slot);
      if (sourceId !== "") this.#bySourceId.set(sourceId, slot);
    }
    if (slot.name === "") slot.name = name;
    const args = made["arguments"];
    const piece = typeof args === "string" ? args : isJsonObject(args) ? JSON.stringify(args) : "";
    if (piece !== "") slot.pieces.push(piece);
    if (call["extra_content"] !== undefined) this.extras.set(slot.id, call["extra_content"]);
    this.#pending.add(slot);
    return piece;
  }
  #add(sourceId: string, name: string): Slot {
    const at = this.#slots.length;
    const wanted = sourceId === "" ? `call_${at}` : sourceId;
    const id = this.#ids.has(wanted) ? `${wanted}_${at}` : wanted;
    const slot: Slot = { index: at, sourceId, id, name, announced: false, pieces: [] };
    this.#ids.add(id);
    this.#slots.push(slot);
    return slot;
  }

  /** What came since the last flush, as entries of `tool_calls`. */
  flush(): readonly JsonObject[] {
    const calls = [...this.#pending].map((slot) => {
      const announce = slot.announced ? {} : { id: slot.id, type: "function" };
      const entry = {
        index: slot.index,
        ...announce,
        function: { ...(slot.announced ? {} : { name: slot.name }), arguments: slot.pieces.join("") },
      };
      slot.announced = true;
      slot.pieces = [];
      return entry;
    });
    this.#pending.clear();
    return calls;
  }
}
