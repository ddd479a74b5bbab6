/** Files of a session. */
import type { Attachment } from "../../../protocol/gen/types.ts";
import type { ContentBlock, MediaBlock, Message } from "./messages.ts";
import type { Result } from "./result.ts";
import type { EffectiveConfig, ModelAccess } from "./run-context.ts";
import type { ToolTarget } from "./tool-target.ts";

/** A session's media. Keys derive from what names the file, so that doing anything again stores nothing twice. */
export interface SessionMedia {
  /** Attachments as they came. What can't be taken becomes a note in words for the model; a bucket that fails is an error. */
  takeAttachments(input: {
    readonly sessionKey: string;
    readonly messageId: string;
    readonly attachments: readonly Attachment[];
    /** What is wrong with a file is a note as well, and no refusal. */
    readonly badFilesAsNotes?: true;
    readonly now: number;
  }): Promise<Result<{ readonly blocks: readonly MediaBlock[]; readonly notes: readonly string[] }>>;
  /** Images of a tool's result move to the bucket. Never fails: what can't be stored becomes a text that says so. */
  takeResult(input: {
    readonly sessionKey: string;
    readonly callId: string;
    /** Where the call ran: a machine's result may refer to images that this machine uploaded for the call. */
    readonly target: ToolTarget;
    readonly content: readonly ContentBlock[];
    readonly now: number;
  }): Promise<readonly ContentBlock[]>;
  /**
   * Stored files as the model can take them, each with its short name: images as bytes (where it sees any), transcripts and documents as text, the rest as a
   * note. The very same list when there are none.
   */
  hydrate(messages: readonly Message[], view: MediaView): Promise<readonly Message[]>;
  /** What is said in a recording. Never throws. */
  transcribe(block: MediaBlock, config: EffectiveConfig, access: ModelAccess, signal: AbortSignal): Promise<Result<string>>;
  /** Everything of the session uploaded before `before` (epoch ms) but what is named in `keep`. Says how many objects went. */
  delete(sessionKey: string, before: number, keep: ReadonlySet<string>): Promise<Result<number>>;
}

/** How a model sees the session's files. */
export interface MediaView {
  /** It can see images. */
  readonly images: boolean;
  /** Numbers of files by key, for their short names (`media:3`). */
  readonly numbers: (keys: readonly string[]) => ReadonlyMap<string, number>;
}

/** Workers AI, for speech to text. */
export interface SpeechAi {
  run(model: string, input: Readonly<Record<string, unknown>>): Promise<unknown>;
}
