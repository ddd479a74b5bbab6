/** Turns texts into vectors: the port of every embedding service, and of the built-in table. Types only. */
import type { GsvError } from "./result.ts";

/** A vector of length 1: `bytes[i] * scale`. */
export interface Vector {
  readonly bytes: Int8Array;
  readonly scale: number;
}
/** Vectors of different models are never compared. */
export interface EmbeddingModel {
  /** The service, with its address when it is not the usual one. */
  readonly provider: string;
  readonly model: string;
  readonly dimensions: number;
}
export const modelKey = ({ provider, model, dimensions }: EmbeddingModel): string => `${provider}/${model}/${dimensions}`;

export interface Embedded {
  /** One for each text, in order. Undefined: the built-in table has no word of the text. */
  readonly vectors: readonly (Vector | undefined)[];
  /** As the service counted them, else an estimate. */
  readonly tokens: number;
}
export type EmbedAnswer =
  | { readonly ok: true; readonly value: Embedded }
  | {
      readonly ok: false;
      readonly error: GsvError;
      /** Tokens that the service counts all the same. `unknown`: it was asked and did not answer. Absent: none. */
      readonly used?: number | "unknown";
    };
export interface Embeddings {
  readonly of: EmbeddingModel;
  /**
   * Fails with `embeddings.unavailable`, `.refused`, `.text_refused` or `.invalid_answer`. Never throws, and never says a key or the
   * service's own text. At most `EMBEDDED_AT_ONCE` texts.
   */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<EmbedAnswer>;
}
export const EMBEDDED_AT_ONCE = 64;

/** Workers AI, as far as it embeds texts. */
export interface EmbeddingAi {
  run(model: string, input: { readonly text: readonly string[] }): Promise<unknown>;
}
