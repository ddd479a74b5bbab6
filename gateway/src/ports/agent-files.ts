/** The agent's files as native tools use them. A change is made once for a call id, in the name of the session that calls. */
import type { Media } from "../../../protocol/gen/types.ts";
import type { NativeToolContext } from "./native-tools.ts";
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";

export interface FileListing {
  /** "" for the workspace itself. */
  readonly path: string;
  /** Paths from the workspace down, sorted. */
  readonly files: readonly string[];
  readonly directories: readonly string[];
  /** There is more than was listed. */
  readonly truncated: boolean;
}
/** Names are text, too: those that others may have chosen have a label (rule TA14). */
export interface LabelledListing extends FileListing {
  readonly labels: ReadonlyMap<string, Taint>;
}
export interface FileContent {
  readonly path: string;
  readonly content: string;
  /** Bytes. */
  readonly size: number;
  /** ISO 8601. */
  readonly lastModified: string;
  readonly etag: string;
  /** Others may have written what the run had read that wrote it (rule TA14). Absent: nothing is known of others. */
  readonly taint?: Taint;
}
export interface FileWritten {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}
/** The new content of a file (`current` is undefined when there is none). An error stops the change, and nothing is written. */
export type FileChange = (current: string | undefined) => Result<string>;

/** A change of a memory that waits for the owner (rule TA12): as it was asked for, not its result. */
export type MemoryChange =
  | { readonly kind: "append"; readonly text: string }
  | { readonly kind: "write"; readonly content: string }
  | { readonly kind: "edit"; readonly oldString: string; readonly newString: string; readonly replaceAll: boolean };

export interface AgentFiles {
  list(agentId: string, path: string | undefined): Promise<Result<LabelledListing>>;
  /** `maxBytes` defaults to LIMITS.workspaceFileBytes. */
  read(agentId: string, path: string, maxBytes?: number): Promise<Result<FileContent>>;
  /** The agent's own file, without built-in and shared ones. Undefined: there is none. */
  own(agentId: string, path: string): Promise<Result<FileContent | undefined>>;
  /** Who may have written these files, the highest label of them. Undefined: nothing is known of others. */
  taintOf(agentId: string, paths: readonly string[]): Promise<Taint | undefined>;
  /** `whole`: nothing of the old content stays, nor its label. */
  update(path: string, context: NativeToolContext, change: FileChange, whole?: boolean): Promise<Result<FileWritten>>;
  /** Keeps a change of a memory for the owner, instead of making it. The context must have a label. */
  quarantine(path: string, context: NativeToolContext, change: MemoryChange): Promise<Result<{ readonly id: string }>>;
  delete(path: string, context: NativeToolContext): Promise<Result<{ readonly path: string; readonly deleted: true }>>;
  /** A skill's file, only as it was approved. Undefined: the path names no skill's file in the bucket. */
  skill(path: string, context: NativeToolContext): Promise<Result<string> | undefined>;
  /** The text of a file of this session, by its short name. Undefined: the path is not such a name. */
  received(path: string, context: NativeToolContext): Promise<Result<string> | undefined>;
  /** Files to send, by path, `media:N` or key: stored as this session's media, under names that derive from the call id. */
  outgoing(paths: readonly string[], context: NativeToolContext): Promise<Result<readonly Media[]>>;
}
