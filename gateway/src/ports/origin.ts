/**
 * Who caused a message, a run or a tool call. Stored with the run; policy, budgets and the audit log read it. No code parses ids,
 * session keys or texts to learn who asks. PURE.
 */
import type { Peer } from "../../../protocol/gen/types.ts";
import { actorText } from "./actor.ts";

/** A sender on a channel. */
export interface ChannelOrigin {
  readonly kind: "channel";
  readonly channel: string;
  readonly accountId: string;
  /** The conversation on the platform. Absent only in old messages, which were stored without it. */
  readonly peer?: Peer;
  readonly senderId?: string;
  /** The sender's access when the message arrived; `guest` for old messages, which were stored without it. */
  readonly role: "owner" | "guest";
}

/** A task that the run of another agent has handed on. */
export interface Delegation {
  /** The conversation and the run that wait for the report. */
  readonly sessionKey: string;
  readonly runId: string;
  /** How many runs stand above this one, from 1. */
  readonly depth: number;
  /** The least that the definitions above it allow. */
  readonly maxDepth: number;
  /** The agents above it, the first one first. */
  readonly agents: readonly string[];
  /** What the run above had left for it. */
  readonly budget: DelegatedBudget;
}
export interface DelegatedBudget {
  readonly ms: number;
  readonly costUsd: number;
  /** Tokens of models without a known price. Absent: no limit. */
  readonly tokens?: number;
}

/** The domain event that a chain of runs has begun with last. */
export interface CausingEvent {
  readonly id: string;
  /** Events and conversations that the chain has come through, from 1. */
  readonly hops: number;
}

export type Origin =
  /** A connected client; `tokenId` names the token of its connection. */
  | { readonly kind: "client"; readonly clientId: string; readonly tokenId?: string }
  | ChannelOrigin
  /** Another session of the same gateway. `hops` counts the sessions in the chain, from 1. */
  | { readonly kind: "session"; readonly sessionKey: string; readonly hops: number }
  /** The end of a background command on a node. */
  | { readonly kind: "node_event"; readonly nodeId: string }
  /** A job, at its time. `budget`: what its run may use, beside the other limits. */
  | {
      readonly kind: "schedule";
      readonly jobId: string;
      /** An answer that says nothing leaves the conversation (rule HB5). */
      readonly heartbeat?: true;
      /** The hook whose delivery has caused the run. */
      readonly hook?: string;
      readonly budget: { readonly steps: number; readonly ms: number; readonly costUsd: number };
      /** How long its calls wait for machines that are not connected. Absent: not at all, unless the model asks. */
      readonly waitMs?: number;
      /** How far the chain has come that the job belongs to: a run in a chain has made, changed or started it. Absent: none has. */
      readonly hops?: number;
    }
  /** A task: of a program with a client's token, of another agent, or of a domain event. */
  | {
      readonly kind: "task";
      readonly taskId: string;
      /** The request had a key. */
      readonly keyed?: true;
      readonly delegation?: Delegation;
      readonly event?: CausingEvent;
    }
  /** The gateway itself, for example a note about an undelivered message. */
  | { readonly kind: "gateway" };

/** The run that belongs to a chain. */
export interface ChainLink {
  /** Absent: a client made the call itself. */
  readonly origin?: Origin;
  readonly sessionKey: string;
}
/** A chain of conversations and events is at most this long: A to B to C to D, and no further. */
export const MAX_HOPS = 3;
/** Conversations and events that the chain has come through so far. */
export function hopsOf(origin: Origin | undefined): number {
  if (origin?.kind === "session") return origin.hops;
  if (origin?.kind === "schedule") return origin.hops ?? 0;
  return origin?.kind === "task" ? (origin.event?.hops ?? 0) : 0;
}

/** The owner asks, at a client or in a direct message: no group, no other session, no machine. */
export const isPlainlyOwner = (origin: Origin): boolean =>
  origin.kind === "client" || (origin.kind === "channel" && origin.role === "owner" && origin.peer?.kind === "dm");

/**
 * A message of `sender` has the authority of a run that `run` caused: it may say how the run goes on. The owner at any of their own places,
 * or the same person in the same conversation. A job, another session and a machine have a run of their own, and no one speaks for them.
 */
export function sameAuthority(run: Origin, sender: Origin): boolean {
  if (isPlainlyOwner(run) && isPlainlyOwner(sender)) return true;
  if (run.kind !== "channel" || sender.kind !== "channel") return false;
  return (
    run.senderId !== undefined &&
    run.senderId === sender.senderId &&
    run.role === sender.role &&
    run.channel === sender.channel &&
    run.accountId === sender.accountId &&
    run.peer !== undefined &&
    run.peer.kind === sender.peer?.kind &&
    run.peer.id === sender.peer.id
  );
}

/** What has caused a run (rule AU7): for a client also whose token it was. */
export const causeText = (origin: Origin): string =>
  origin.kind === "client" && origin.tokenId !== undefined ? actorText("client", origin.clientId, origin.tokenId) : originText(origin);
/** An origin as the audit shows it. */
export function originText(origin: Origin): string {
  switch (origin.kind) {
    case "client":
      return "client";
    case "channel":
      return `channel ${origin.channel} ${origin.role}`;
    case "session":
      return `session ${origin.sessionKey}`;
    case "node_event":
      return `node ${origin.nodeId}`;
    case "schedule":
      return origin.hook === undefined ? `job ${origin.jobId}` : `hook ${origin.hook}`;
    case "task":
      if (origin.delegation !== undefined) return `task ${origin.taskId} of ${origin.delegation.sessionKey}`;
      return origin.event === undefined ? `task ${origin.taskId}` : `task ${origin.taskId} of the event ${origin.event.id}`;
    case "gateway":
      return "gateway";
  }
}
