/** A machine with the service manager that tests play (test/fakes/services). */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Machine, ROOT } from "./support.ts";

export interface ServiceEnvironment extends Readonly<Record<string, string>> {
  readonly PATH: string;
}

/** The environment of its commands: its folder is the person's home. */
export function withServices(machine: Pick<Machine, "folder">): ServiceEnvironment {
  const folder = join(machine.folder, "fake");
  mkdirSync(folder);
  for (const name of ["systemctl", "loginctl", "lib"]) copyFileSync(join(ROOT, "test", "fakes", "services", name), join(folder, name));
  return { HOME: machine.folder, FAKE: folder, PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` };
}

/** Runs the command of a unit as its manager does: with nothing but the environment of the unit. */
export function startUnit(machine: Machine, file: string): ChildProcess {
  const unit = readFileSync(file, "utf8");
  const values = (key: string) => [...unit.matchAll(new RegExp(`^${key}=:?(.*)$`, "gm"))].map(([, value]) => value).join(" ");
  const script = `exec env -i HOME="${machine.folder}" PATH=/usr/bin:/bin SHELL=/bin/sh ${values("Environment")} ${values("ExecStart")}`;
  return spawn("/bin/sh", ["-c", script], { stdio: "ignore", cwd: "/" });
}
