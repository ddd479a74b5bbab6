/**
 * Adds the optional packages of every platform to the lock file, so that `npm ci` works everywhere and from any registry. npm leaves
 * out packages that it could not look up when it wrote the file, and later refuses such a file. PURE: takes and gives JSON.
 */

interface LockedPackage {
  version?: string;
  optionalDependencies?: Record<string, string>;
  license?: string;
  dev?: boolean;
  [more: string]: unknown;
}
export interface LockFile {
  packages: Record<string, LockedPackage>;
  [more: string]: unknown;
}

/** `@scope/name-darwin-arm64` -> the os, cpu and libc that npm checks before it installs. */
function platformOf(name: string): { os?: string[]; cpu?: string[]; libc?: string[] } {
  const words = name.split(/[/-]/);
  const os = { darwin: "darwin", linux: "linux", windows: "win32", win32: "win32", android: "android", freebsd: "freebsd" };
  const cpu = { arm64: "arm64", x64: "x64", "64": "x64" };
  const found = <T extends Record<string, string>>(table: T): string | undefined =>
    words.map((word) => table[word]).find((it) => it !== undefined);
  const [system, processor] = [found(os), found(cpu)];
  return {
    ...(system === undefined ? {} : { os: [system] }),
    ...(processor === undefined ? {} : { cpu: [processor] }),
    ...(words.includes("musl") ? { libc: ["musl"] } : {}),
  };
}

/** The lock file with the missing packages, and their names. */
export function withAllPlatforms(lock: LockFile): { lock: LockFile; added: string[] } {
  const packages: LockFile["packages"] = { ...lock.packages };
  const added: string[] = [];
  for (const [path, { optionalDependencies, license, dev }] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies ?? {})) {
      if (packages[`node_modules/${name}`] !== undefined || packages[`${path}/node_modules/${name}`] !== undefined) continue;
      const { os, cpu, libc } = platformOf(name);
      // Only exact versions can be named without a registry; npm resolves the rest.
      if (os === undefined || cpu === undefined || !/^\d+\.\d+\.\d+[\w.+-]*$/.test(version)) continue;
      packages[`node_modules/${name}`] = {
        version,
        cpu,
        ...(dev === true ? { dev } : {}),
        ...(libc === undefined ? {} : { libc }),
        ...(license === undefined ? {} : { license }),
        optional: true,
        os,
      };
      added.push(name);
    }
  }
  const sorted = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { lock: { ...lock, packages: sorted }, added };
}
