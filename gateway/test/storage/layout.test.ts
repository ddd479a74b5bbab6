/** The storage layout on the runtime's simulation of R2. */
import { env } from "cloudflare:workers";
import { describe, it } from "vitest";
import { layoutCases } from "../support/layout-contract.ts";

describe("the layout in the runtime's bucket", () => {
  for (const [index, { name, run }] of layoutCases.entries()) it(name, () => run(env.STORAGE, `layout-${index}`));
});
