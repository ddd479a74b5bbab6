/** The built `gsv` on a pseudo terminal: a test types, and reads what was printed. util-linux' `script` gives the terminal. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";
import { BIN, type Machine, until } from "./support.ts";

/** Why no terminal can be given here; false where one can. Another system's `script` has other options. */
export const noTerminal: string | false = String(spawnSync("script", ["--version"]).stdout ?? "").includes("util-linux")
  ? false
  : "util-linux' script is missing";

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

export class Terminal {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown[]>;
  #printed = "";

  constructor(machine: Machine, ...args: readonly string[]) {
    const command = `stty cols 120 rows 40; exec ${[BIN, ...args].map(quoted).join(" ")}`;
    this.#child = spawn("script", ["-q", "-e", "-f", "-c", command, "/dev/null"], {
      cwd: machine.folder,
      env: machine.env({ TERM: "xterm-256color" }),
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#printed += text;
    });
    this.#child.stdin?.on("error", () => undefined);
    this.#ended = once(this.#child, "close");
  }

  /** All output until now, without colours and movements of the cursor. */
  get printed(): string {
    return stripVTControlCharacters(this.#printed);
  }
  types(keys: string): void {
    this.#child.stdin?.write(keys);
  }
  async shows(text: string): Promise<void> {
    await until(`the terminal shows ${JSON.stringify(text)}`, () => this.printed.includes(text)).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.printed}`);
    });
  }
  /** Waits for the end of the program, which must have succeeded. */
  async succeeds(): Promise<void> {
    await until("the program ends", () => this.#child.exitCode !== null);
    await this.#ended;
    assert.equal(this.#child.exitCode, 0, this.printed);
  }
  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
