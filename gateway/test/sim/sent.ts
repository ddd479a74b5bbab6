/** What people and the gateway send to a session in a history. */

/** What the senders know. */
export interface Sent {
  readonly messageId: string;
  readonly runId: string;
  /** It comes with a recording. */
  readonly voice?: boolean;
  /** It came over a platform, and its end is sent there. */
  readonly routed?: boolean;
  /** It is only to be known: no run answers it. */
  readonly quiet?: boolean;
  /** How much longer than usual its text is. */
  readonly extraChars?: number;
  /** What it does while a run is under way. */
  readonly wish?: "steer" | "interrupt" | undefined;
  /** A guest of a group wrote it; all others are the owner's. */
  readonly guest?: boolean;
  state: "pending" | "accepted" | "refused";
}

/** A note of the gateway that the session has acknowledged. */
export interface Noted {
  readonly key: string;
  readonly text: string;
  readonly forModel: boolean;
}
