/** The interface of the two ends of an attempt. Types only. */
import type { AttemptEvent } from "./attempt.ts";

/** A chunk behind the bytes of its header. Its receiver may change it, and gives its memory back. */
export type Frame = Uint8Array<ArrayBuffer>;

/** Tells the attempt what happens at an end. After `close` nothing is told. */
export type Tell = (event: Exclude<AttemptEvent, { kind: "chunk" }>) => void;

export interface SourceEnd {
  ask(): void;
  start(offset: number): void;
  /** The destination has stored the file up to here. */
  ack(offset: number): void;
  /** This attempt was given up: the end lets go of its file, and keeps what it has for the next attempt. Before `close`. */
  giveUp?(): void;
  /** `problem`: the transfer has ended without success. */
  close(problem?: string): void;
}
export interface DestinationEnd {
  offer(sizeBytes: number, sha256: string | undefined): void;
  chunk(frame: Frame): void;
  finish(sha256: string): void;
  giveUp?(): void;
  /** As that of the source. False: what the destination has of the file could not be removed now. */
  close(problem?: string): boolean;
  /** Resolves when nothing more is written after `close`. */
  readonly idle?: () => Promise<void>;
}
