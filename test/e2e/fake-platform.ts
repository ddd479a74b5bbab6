/** A fake platform as a program of its own, for tests that set up a channel by commands. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ROOT } from "./support.ts";

/** It prints its address on the first line. */
export class FakePlatform {
  readonly #child: ChildProcess;
  constructor(script: string, ...args: readonly string[]) {
    this.#child = spawn(process.execPath, [join(ROOT, "channels", "fakes", script), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  }
  async told(): Promise<Record<string, string>> {
    const { stdout } = this.#child;
    assert(stdout);
    let text = "";
    for await (const piece of stdout) {
      text += String(piece);
      if (text.includes("\n")) break;
    }
    return JSON.parse(text) as Record<string, string>;
  }
  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "close");
  }
}
