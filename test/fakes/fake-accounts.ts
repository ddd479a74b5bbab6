/** A service with the accounts of a B2B product: JSON over HTTP. What is written counts once for an idempotency key. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeAccounts {
  readonly url: string;
  readonly token: string;
  /** By account: the keys under which a score was stored. */
  readonly scores: ReadonlyMap<string, ReadonlySet<string>>;
  readonly tasks: ReadonlyMap<string, ReadonlySet<string>>;
  close(): Promise<void>;
}
export async function startFakeAccounts(): Promise<FakeAccounts> {
  const token = "token-of-the-accounts";
  const scores = new Map<string, Set<string>>();
  const tasks = new Map<string, Set<string>>();
  const server = createServer((request, response) => {
    request.resume();
    const answer = (status: number, body: unknown): void =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const [, account = "", what = ""] = /^\/api\/accounts\/([\w-]+)\/(\w+)$/.exec(request.url ?? "") ?? [];
    if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { error: "unauthorized" });
    if (request.method === "GET" && what === "usage") return answer(200, { account, seats: 40, activeUsers: 9, trend: "down" });
    if (request.method === "GET" && what === "tickets") return answer(200, { account, open: [{ title: "Export is broken" }] });
    const rows = { scores, tasks }[what];
    const key = request.headers["idempotency-key"];
    if (request.method !== "POST" || rows === undefined) return answer(404, { error: "not found" });
    if (typeof key !== "string") return answer(400, { error: "an idempotency key is needed" });
    rows.set(account, (rows.get(account) ?? new Set()).add(key));
    return answer(200, { ok: true });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`,
    token,
    scores,
    tasks,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
