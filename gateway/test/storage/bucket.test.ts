/** The runtime's own simulation of R2 keeps the contract that the embedded bucket is held to. */
import { env } from "cloudflare:workers";
import { describe, it } from "vitest";
import { bucketCases } from "../support/bucket-contract.ts";

describe("the runtime's bucket", () => {
  for (const [index, { name, run }] of bucketCases.entries()) it(name, () => run(env.STORAGE, `case-${index}/`));
});
