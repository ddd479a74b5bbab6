/** Between the Worker, which answers HTTP, and the Gateway object, which knows tokens. Crosses RPC: plain data only. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import type { AgentReport, HookTaken, JoinRequest, JoinResult, RunRequest } from "../../../protocol/gen/types.ts";

/** The sender of an HTTP request. */
export interface HttpCaller {
  readonly token?: string;
  readonly origin?: string;
  /** Empty where it is not known. */
  readonly address: string;
}
/** A Result without details: plain enough for RPC to keep its type. */
export type Admitted<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: { readonly reason: ErrorReason; readonly message: string; readonly hint?: string } };

/** The query of an upload. */
export interface UploadAsked {
  readonly sessionKey?: string;
  readonly callId?: string;
  readonly id?: string;
}
/** Where an admitted file goes, and its largest size. `id` absent: a new one is made. */
export type UploadPermit =
  | { readonly kind: "upload"; readonly sessionKey: string; readonly id?: string; readonly maxBytes: number }
  | { readonly kind: "call"; readonly sessionKey: string; readonly callId: string; readonly nodeId: string; readonly maxBytes: number };

/** The headers that carry the proof of a hook's sender. A request without any of them is refused unread, and no run is shown them. */
export const HOOK_PROOF_HEADERS = ["authorization", "x-hub-signature-256", "stripe-signature", "webhook-signature"] as const;
/** A delivery to a hook. The headers have lower-case names; only those that a hook reads. */
export interface HookRequest {
  readonly name: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
}
export type HookTakenAs = HookTaken["status"];
export interface HookPort {
  /** Returns when the delivery is stored. */
  hook(request: HookRequest): Promise<Admitted<HookTakenAs>>;
}

/** A task that the Worker has checked against the contract. */
export interface TaskRequest {
  readonly task: RunRequest;
  /** The `Idempotency-Key` header. Absent: each request is a new task. */
  readonly key?: string;
}
export interface TaskPort {
  /** Answers when the run has ended, or waits for the owner. */
  runTask(caller: HttpCaller, request: TaskRequest): Promise<Admitted<AgentReport>>;
}

export interface JoinPort {
  /** Exchanges the secret of an invitation for a token. `address`: empty where it is not known. */
  join(request: JoinRequest, address: string): Promise<Admitted<JoinResult>>;
}

/** What the Worker may call. */
export interface HttpPort extends HookPort, TaskPort, JoinPort {
  /** The scopes of a bearer token over HTTP, or a refusal. */
  authenticate(caller: HttpCaller): Promise<Admitted<{ readonly scopes: readonly string[] }>>;
  /** The permit for a file, or why it may not be uploaded. */
  admitUpload(caller: HttpCaller, asked: UploadAsked): Promise<Admitted<UploadPermit>>;
  /** After a restart of the runtime: channels connect, and interrupted sessions continue (gateway rule D6). */
  restarted(): Promise<void>;
  /** Throws what opening the gateway throws, such as the refusal of state of a newer version (gateway rule UP2). */
  opened(): Promise<void>;
  /** Throws when this version can't use the state (gateway rule UP2). */
  checkState(): Promise<void>;
}
