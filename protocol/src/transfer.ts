/** Transfers of files that are too large for a text frame: text frames announce them, binary frames carry them. */
import { event, method, t } from "./dsl.ts";

const transferId = t.int(0, 4294967295);
const ok = { ok: t.literal(true) };
const node = { callers: ["node"], scope: "node", audit: "none" } as const;
method("transfer.meta", {
  doc: "The sender announces a file.",
  params: { transferId, size: t.int(), mime: t.optional(t.string(128)), error: t.optional(t.text()) },
  result: ok,
  ...node,
});
method("transfer.accept", {
  doc: "The receiver accepts the file, or refuses it with `error`.",
  params: { transferId, error: t.optional(t.text()) },
  result: ok,
  ...node,
});
method("transfer.complete", { doc: "The sender has sent the whole file.", params: { transferId }, result: ok, ...node });
method("transfer.done", {
  doc: "The receiver has written the whole file.",
  params: { transferId, bytesWritten: t.int(), error: t.optional(t.text()) },
  result: ok,
  ...node,
});
event("transfer.send", { doc: "Asks a node to announce a file.", payload: { transferId, path: t.string(4096) }, to: ["node"] });
event("transfer.start", { doc: "Asks a node to send.", payload: { transferId }, to: ["node"] });
event("transfer.receive", {
  doc: "Asks a node to receive a file.",
  payload: { transferId, path: t.string(4096), size: t.int(), mime: t.optional(t.string(128)) },
  to: ["node"],
});
event("transfer.end", { doc: "The gateway has relayed the whole file.", payload: { transferId }, to: ["node"] });
