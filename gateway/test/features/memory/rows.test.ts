/** The runtime's D1 fulfils the contract of the store of long-term memory. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { D1Memory } from "../../../src/features/memory/d1-store.ts";
import { rowsCases } from "./rows-contract.ts";

describe("the rows of long-term memory, in D1", () => {
  const rows = (): D1Memory =>
    new D1Memory(
      env.DB as D1Database,
      () => 1,
      (what, error) => expect.unreachable(`${what}: ${String(error)}`),
    );
  for (const [index, { name, run }] of rowsCases.entries()) it(name, () => run(rows(), { tenantId: "default", agentId: `rows-${index}` }));
});
