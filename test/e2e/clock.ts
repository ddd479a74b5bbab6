/** A wall clock that tests set: in their own process, and in the workerd processes that are started after it was set. Linux only. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./support.ts";

/** Its library is loaded into a program before the C library, which other systems do in other ways. */
export const canSetClock = process.platform === "linux";

export class Clock {
  readonly #folder = mkdtempSync(join(tmpdir(), "gsv-clock-"));
  readonly #library = join(this.#folder, "clock.so");
  readonly #real = Date.now;
  #aheadS = 0;

  constructor() {
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", this.#library, join(ROOT, "test", "fakes", "clock.c"), "-ldl"]);
    Date.now = () => this.#real() + this.#aheadS * 1_000;
  }
  /** For processes that are started from now on: it is `at` now, to the second. */
  set(at: Date): void {
    this.#aheadS = Math.round((at.getTime() - this.#real()) / 1_000);
  }
  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.#library, GSV_CLOCK_AHEAD_S: String(this.#aheadS) };
  }
  end(): void {
    Date.now = this.#real;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
