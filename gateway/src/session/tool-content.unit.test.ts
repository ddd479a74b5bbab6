/** What tools give, on its way into the log. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromNative } from "./tool-content.ts";

test("[F10] [S5] a token in a native tool's result is hidden, and text that only looks similar is kept", () => {
  const secret = "0123456789abcdef".repeat(4);
  const result = {
    text: `a gsv_admin_ab12cd34_${secret} and gsv_client-ro_ab12cd34_${secret}.`,
    same: ["gsv_admin", "gsv__ReadFile", "gsv_node_guide", `ref_${secret}`],
  };
  const [block] = fromNative({ ok: true, result }, (text) => text).content;
  assert.deepEqual(JSON.parse(block?.type === "text" ? block.text : ""), { text: "a [redacted] and [redacted].", same: result.same });
});
