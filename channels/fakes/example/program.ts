/**
 * A fake of the example's platform: signs its webhooks and takes callbacks once per id. For tests; it sends nothing by itself.
 */
import { createHmac } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Shown {
  readonly id: string;
  readonly to: string;
  readonly text: string;
}
export function signed(secret: string, body: string, timestamp = String(Date.now())): Record<string, string> {
  const signature = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  return { "X-Timestamp": timestamp, "X-Signature": signature };
}

export class Program {
  readonly secret: string;
  /** Messages that people see, in order. */
  readonly shown: Shown[] = [];
  /** All requests, also failed ones. */
  requests = 0;
  /** Signed callbacks, with repetitions. */
  callbacks = 0;
  /** Decides the answer to a callback: `lose` takes it and cuts the connection, `refuse` fails once, `gone` fails for good. */
  onCallback: (shown: Shown) => "take" | "lose" | "refuse" | "gone" = () => "take";
  readonly #server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => this.#take(body, request.headers, response));
  });
  constructor(secret: string) {
    this.secret = secret;
  }
  async listen(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return this;
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/said`;
  }
  sign(body: string): Record<string, string> {
    return signed(this.secret, body);
  }
  #take(body: string, headers: Readonly<Record<string, unknown>>, response: ServerResponse): void {
    this.requests += 1;
    const expected = signed(this.secret, body, String(headers["x-timestamp"]));
    if (headers["x-signature"] !== expected["X-Signature"]) return void response.writeHead(401).end();
    this.callbacks += 1;
    const { id, to, text } = JSON.parse(body) as Shown;
    const what = this.onCallback({ id, to, text });
    if (what === "refuse" || what === "gone") return void response.writeHead(what === "gone" ? 410 : 503).end();
    if (!this.shown.some((shown) => shown.id === id)) this.shown.push({ id, to, text });
    if (what === "lose") return void response.destroy();
    response.writeHead(204).end();
  }
  to(person: string): string[] {
    return this.shown.filter(({ to }) => to === person).map(({ text }) => text);
  }
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}
