/** Between the Worker, which answers HTTP, and the Gateway object, which knows tokens. Crosses RPC: plain data only. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";

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
/** Where an uploaded file goes. `id` absent: a new one is made. */
export type UploadPlace =
  | { readonly kind: "upload"; readonly sessionKey: string; readonly id?: string; readonly maxBytes: number }
  | { readonly kind: "call"; readonly sessionKey: string; readonly callId: string; readonly nodeId: string; readonly maxBytes: number };

/** What the Worker may call. */
export interface HttpPort {
  /** The scopes of a bearer token over HTTP, or a refusal. */
  authenticate(caller: HttpCaller): Promise<Admitted<{ readonly scopes: readonly string[] }>>;
  /** Where an uploaded file goes, or why it may not be uploaded. */
  admitUpload(caller: HttpCaller, asked: UploadAsked): Promise<Admitted<UploadPlace>>;
  /** After a restart of the runtime: channels connect, and interrupted sessions continue (gateway rule D6). */
  restarted(): Promise<void>;
}
