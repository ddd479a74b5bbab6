/** What every area of the fake's API needs: answers, refusals, and the token of a session. */
import type { ServerResponse } from "node:http";

export type Row = Readonly<Record<string, unknown>>;
export interface Answer {
  readonly result: unknown;
  /** `result_info`. */
  readonly info?: Row;
}

export class Refusal extends Error {
  readonly status: number;
  readonly code: number;
  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
export const missing = (code: number, message = "not found"): never => {
  throw new Refusal(404, code, message);
};
/** wrangler reads when it expires. */
export const jwt = (): string => `e30.${Buffer.from(JSON.stringify({ exp: 4_000_000_000 })).toString("base64url")}.sig`;

export function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
