/** The built-in embedding service: reads vectors from the table of word vectors that comes with the gateway, so that no text is sent anywhere. PURE. */
import type { Embeddings, Vector } from "../ports/embeddings.ts";

/** `embed`: the vector of a text; undefined: the table has no word of it. */
export const builtInEmbeddings = (
  { model, embed }: { readonly model: string; readonly embed: (text: string) => Vector | undefined },
  dimensions: number,
): Embeddings => ({
  of: { provider: "built-in", model, dimensions },
  embed: (texts) => Promise.resolve({ ok: true, value: { vectors: texts.map(embed), tokens: 0 } }),
});
