/** Runs a program to its end and keeps what it says. Never a shell, so that names with spaces are just names. */
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Everything it says goes here too. */
  readonly logFile?: string;
  /** It may talk to the terminal itself; then nothing is kept. */
  readonly inherit?: boolean;
}
export interface RunResult {
  /** 127 when it could not be started. */
  readonly code: number;
  readonly stdout: string;
  /** stdout and stderr as they came. */
  readonly output: string;
  readonly ms: number;
}

export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: options.inherit === true ? "inherit" : ["ignore", "pipe", "pipe"],
    });
    const log = options.logFile === undefined ? undefined : createWriteStream(options.logFile, { flags: "a" });
    let stdout = "";
    let output = "";
    const take = (text: string): void => {
      output += text;
      log?.write(text);
    };
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      take(text);
    });
    child.stderr?.setEncoding("utf8").on("data", take);
    const done = (code: number): void => {
      log?.end();
      resolve({ code, stdout, output, ms: performance.now() - started });
    };
    child.on("error", (error) => {
      take(`${command} could not be started: ${error.message}\n`);
      done(127);
    });
    child.on("close", (code, signal) => {
      if (signal !== null) take(`${command} was ended by ${signal}\n`);
      done(code ?? 1);
    });
  });
}
