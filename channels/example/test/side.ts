/** The example's platform, played: a program that signs webhooks, sends them until they are taken, and takes callbacks once by their id. */
import { createHmac } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { bundle } from "../../../gateway/test/support/raw-workerd.ts";
import type { Person, Shown, Side } from "../../kit/test/contract.ts";
import { ROOT, Stage, type StagedWorker } from "../../kit/test/stage.ts";

export const SECRET = "example-secret-of-thirty-letters";
export const EXAMPLE = { className: "ExampleAccount", date: "2026-11-01", flags: [] } as const;
export const exampleWorker = async (): Promise<StagedWorker> => ({
  ...EXAMPLE,
  script: await bundle(join(ROOT, "channels", "example", "src", "worker.ts")),
});

export function signed(secret: string, body: string, timestamp = String(Date.now())): Record<string, string> {
  const signature = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  return { "X-Timestamp": timestamp, "X-Signature": signature };
}

/** Where callbacks go. */
export class Callbacks {
  /** What people see, by whom it is for. */
  readonly shown: (Shown & { readonly to: string })[] = [];
  /** The answers to these people's next callbacks are lost. */
  readonly #lost = new Set<string>();
  readonly #refused = new Set<string>();
  /** Every request, also those that came to nothing. */
  requests = 0;
  badSignatures = 0;
  readonly #server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => this.#take(body, request.headers, response));
  });
  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/said`;
  }
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
  loseAnswer(to: string): void {
    this.#lost.add(to);
  }
  refuse(to: string): void {
    this.#refused.add(to);
  }
  #take(body: string, headers: Readonly<Record<string, unknown>>, response: ServerResponse): void {
    this.requests += 1;
    const expected = signed(SECRET, body, String(headers["x-timestamp"]));
    if (headers["x-signature"] !== expected["X-Signature"]) {
      this.badSignatures += 1;
      return void response.writeHead(401).end();
    }
    const { id, to, text } = JSON.parse(body) as { id: string; to: string; text: string };
    if (this.#refused.has(to)) return void response.writeHead(410).end();
    if (!this.shown.some((shown) => shown.id === id)) this.shown.push({ id, to, text });
    if (this.#lost.delete(to)) return void response.destroy();
    response.writeHead(204).end();
  }
}

export async function exampleSide(): Promise<Side> {
  const stage = await new Stage().open(await exampleWorker());
  const callbacks = await new Callbacks().listen();
  let people = 0;
  const post = async (message: object): Promise<void> => {
    const body = JSON.stringify(message);
    for (const end = Date.now() + 10_000; ; ) {
      const response = await stage.fetch("/default", { method: "POST", body, headers: signed(SECRET, body) });
      const text = await response.text();
      if (response.status === 200) return;
      if (response.status !== 503 || Date.now() > end) throw new Error(text);
    }
  };
  return {
    stage,
    async start() {
      await stage.call("start", { accountId: "default", config: { secret: SECRET, callbackUrl: callbacks.url } });
    },
    async person(): Promise<Person> {
      const from = `person-${++people}@example`;
      const own = people;
      let said = 0;
      return {
        peer: { kind: "dm", id: from },
        async say(text) {
          const id = `w${own}-${++said}`;
          await post({ id, from, text, name: "Someone Particular" });
          return id;
        },
        again: (id, text) => post({ id, from, text }),
        // The webhook's answer said so.
        told: () => Promise.resolve(),
        shown: () => callbacks.shown.filter(({ to }) => to === from),
        loseAnswer: () => callbacks.loseAnswer(from),
        refuse: () => callbacks.refuse(from),
      };
    },
    secrets: () => [SECRET, "Someone Particular", "@example"],
    async close() {
      await stage.end();
      await callbacks.close();
    },
  };
}
