/** The media of a session, and speech to text. */
import type { Attachment } from "../../../protocol/gen/types.ts";
import type { ContentBlock, MediaBlock, Message } from "./messages.ts";
import type { Result } from "./result.ts";
import type { EffectiveConfig, ModelAccess } from "./run-context.ts";
import type { ToolTarget } from "./tool-target.ts";

/** A session's media. A key derives from the file's origin, so a repeated call stores nothing twice. */
export interface SessionMedia {
  /** Stores attachments. An empty one becomes a note for the model; an invalid one or a failing bucket is an error. */
  takeAttachments(input: {
    readonly sessionKey: string;
    readonly messageId: string;
    readonly attachments: readonly Attachment[];
    /** An invalid file becomes a note as well. */
    readonly badFilesAsNotes?: true;
    readonly now: number;
  }): Promise<Result<{ readonly blocks: readonly MediaBlock[]; readonly notes: readonly string[] }>>;
  /** Moves the images of a tool's result to the bucket. Never fails: a text replaces an image that can't be stored. */
  takeResult(input: {
    readonly sessionKey: string;
    readonly callId: string;
    /** Where the call ran: a machine's result may refer to images that this machine uploaded for the call. */
    readonly target: ToolTarget;
    readonly content: readonly ContentBlock[];
    readonly now: number;
  }): Promise<readonly ContentBlock[]>;
  /**
   * Replaces references to files by what the model accepts, each with its short name: images as bytes (where it sees images),
   * transcripts and documents as text, other files as notes. Returns the same list when there are none.
   */
  hydrate(messages: readonly Message[], view: MediaView): Promise<readonly Message[]>;
  /** The transcript of a recording. Never throws. */
  transcribe(block: MediaBlock, config: EffectiveConfig, access: ModelAccess, signal: AbortSignal): Promise<Result<string>>;
  /** Deletes files that were uploaded before `before` (epoch ms), except the keys in `keep`. Returns the number of deleted objects. */
  delete(sessionKey: string, before: number, keep: ReadonlySet<string>): Promise<Result<number>>;
}

/** How a model sees the session's files. */
export interface MediaView {
  /** It can see images. */
  readonly images: boolean;
  /** Numbers of files by key, for their short names (`media:3`). */
  readonly numbers: (keys: readonly string[]) => ReadonlyMap<string, number>;
}

/** Workers AI, as far as it transcribes speech. */
export interface SpeechAi {
  run(model: string, input: Readonly<Record<string, unknown>>): Promise<unknown>;
}
