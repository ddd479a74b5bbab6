/** Public pages, as the gateway reads them by itself. Never an address of this machine or of a local network (rule HB9). */

export interface PublicRequest {
  readonly method: "GET";
  readonly redirect: "manual";
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}
export interface WebPort {
  readonly web: {
    /** Undefined: this gateway has no connection that leads to public addresses only. */
    fetch(url: string, request: PublicRequest): Promise<Response> | undefined;
    /** Aborted when the time is over. */
    limit(ms: number): AbortSignal;
  };
}
