/** The runtime's simulation of R2 fulfils the same contract as the embedded bucket. */
import { env } from "cloudflare:workers";
import { describe, it } from "vitest";
import { bucketCases } from "../support/bucket-contract.ts";

describe("the runtime's bucket", () => {
  for (const [index, { name, run }] of bucketCases.entries()) it(name, () => run(env.STORAGE, `case-${index}/`));
});
