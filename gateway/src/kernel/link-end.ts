/** Why a connection has ended. PURE. */

export interface LinkEnd {
  /**
   * `closed`: by the peer. `broken`: the platform reports it, or a send failed. `silent`: the peer showed no sign of life. `slow`: the peer
   * reads too slowly. `token`: its token was revoked or has expired.
   */
  readonly kind: "closed" | "broken" | "silent" | "slow" | "token";
  /** For people. */
  readonly text: string;
}
/** The ends that the gateway causes by itself. */
export type Dropped = LinkEnd & { readonly kind: "broken" | "silent" | "slow" };

/** The close codes that peers get. */
export const DROP_CODES: Readonly<Record<Dropped["kind"], number>> = { broken: 1011, silent: 4008, slow: 1013 };
