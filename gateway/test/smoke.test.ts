/** The test runtime itself: real workerd, nothing reaches the network. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";

describe("the test runtime", () => {
  it("is workerd", () => {
    expect(navigator.userAgent).toBe("Cloudflare-Workers");
  });

  it("has the bucket", async () => {
    await env.STORAGE.put("smoke/a.txt", "hello");
    expect(await (await env.STORAGE.get("smoke/a.txt"))?.text()).toBe("hello");
  });

  it("refuses the network", async () => {
    const answer = await fetch("https://example.com/");
    expect(answer.status).toBe(599);
    await answer.body?.cancel();
  });
});
