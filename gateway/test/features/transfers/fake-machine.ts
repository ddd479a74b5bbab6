/** A machine that follows the wire of transfers step by step, for tests. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { node, type Peer, until } from "../../support/gateway.ts";

let serial = 0;
export const newId = (): string => (++serial).toString(16).padStart(32, "0");
export const machine = async (id: string): Promise<Machine> =>
  new Machine(
    await node(id, undefined, {
      ledger: { calls: [] },
      nodeRuntime: { hostCapabilities: ["filesystem.transfer", "filesystem.confined"], toolCapabilities: {} },
    }),
  );
export function bytesOf(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = at * 31 + (at >> 10);
  return bytes;
}
export async function sum(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** A machine that follows the wire step by step. */
export class Machine {
  readonly peer: Peer;
  readonly chunks: { attemptId: number; bytes: Uint8Array<ArrayBuffer> }[] = [];
  constructor(peer: Peer) {
    this.peer = peer;
    peer.socket.binaryType = "arraybuffer";
    peer.socket.addEventListener("message", ({ data }: MessageEvent) => {
      if (typeof data === "string") return;
      const view = data as ArrayBuffer;
      this.chunks.push({ attemptId: new DataView(view).getUint32(0, true), bytes: new Uint8Array(view.slice(4)) });
    });
  }
  async asked(event: "transfer.send" | "transfer.receive" | "transfer.start" | "transfer.ack" | "transfer.end", nth = 0) {
    const found = await until(event, () => this.peer.events(event)[nth]);
    return found.payload as {
      transferId: number;
      path?: string;
      offset?: number;
      size?: number;
      sha256?: string;
      error?: string;
      id?: string;
    };
  }
  /** Sends from one offset to another, each part when the one before is acknowledged. */
  async fill(attemptId: number, content: Uint8Array, from: number, to = content.length): Promise<void> {
    const acked = (): number =>
      Math.max(from, ...this.peer.events("transfer.ack").map(({ payload }) => (payload as { offset: number }).offset));
    for (let at = from; at < to; at += LIMITS.transferPartBytes) {
      const end = Math.min(at + LIMITS.transferPartBytes, to);
      this.push(attemptId, content.subarray(at, end));
      if (end - at === LIMITS.transferPartBytes) await until(`${end} bytes to be taken`, () => acked() >= end);
    }
  }
  push(attemptId: number, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += LIMITS.transferChunkBytes) {
      const part = bytes.subarray(at, at + LIMITS.transferChunkBytes);
      const frame = new Uint8Array(4 + part.length);
      new DataView(frame.buffer).setUint32(0, attemptId, true);
      frame.set(part, 4);
      this.peer.socket.send(frame);
    }
  }
}
