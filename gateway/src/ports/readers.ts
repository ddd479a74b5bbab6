/**
 * Readers of documents and images. They are large, so each is a module that is loaded on first use: beside the gateway's code, or in an
 * isolate of its own. What crosses the border of a module is plain data, never an error of a class.
 */

/** A module. */
export type ReaderName = "pdf" | "documents" | "images";
export type ReaderTask =
  | { readonly kind: "pdf" | "docx" | "xlsx" | "pptx" | "eml" | "html" }
  /** An image with more pixels is refused; the scaled one has at most `maxBytes`. */
  | { readonly kind: "image"; readonly maxPixels: number; readonly maxBytes: number };
export type ReaderOutcome =
  /** UTF-8 text of a document, or a JPEG. */
  | { readonly bytes: Uint8Array }
  /** A sentence for the model. */
  | { readonly unreadable: string };

/** A stub of another isolate, or an answer from there, has this method: the isolate stays in memory until it is called. */
export interface Held {
  [Symbol.dispose]?(): void;
}
export interface Reader {
  /** Rejects only when the reader itself ended. */
  read(bytes: Uint8Array, task: ReaderTask): Promise<ReaderOutcome & Held>;
}
export interface Readers {
  /** Rejects when the reader cannot be loaded, which says nothing about any file. */
  open(name: ReaderName): Promise<Reader & Held>;
}
