/** What a reading of a command says about its deletions (rule PO13). PURE. The reading itself is loaded on first use (load.ts). */

/** Files that a command may delete without a question. */
export const MAX_DELETED = 50;
/** `many`: more than `MAX_DELETED` files, or it cannot be told. */
export type Deletion = "few" | "many";

/** The words of each command. */
export type Commands = readonly (readonly string[])[];

export interface DeletionReader {
  /** What a text for a shell deletes at most, as far as its words tell. */
  readonly deletionOf: (text: string) => Deletion;
  /** Whether one command deletes many files, or may. */
  readonly deletesMany: (words: readonly string[]) => boolean;
  /** The program that deletes many files by itself in a text, of git with the subcommand. Undefined: another one runs it, or none is certain. */
  readonly deleterIn: (text: string) => string | undefined;
}
/** Fails closed: where the reading can't be loaded, each command may delete many files. */
export const NOT_READ: DeletionReader = { deletionOf: () => "many", deletesMany: () => true, deleterIn: () => undefined };
