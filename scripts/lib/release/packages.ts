/** The files of an archive and of the npm packages. Without the WhatsApp channel, whose dependencies are GPL-3.0. PURE: names what goes where. */
import type { Platform } from "./platforms.ts";

/** Channels of the runtime that are part of releases. */
export const CHANNELS = ["discord", "example"] as const;
export const LEFT_OUT = "whatsapp";

export interface RuntimeManifest {
  readonly version: string;
  readonly modules: readonly string[];
  readonly channels: Readonly<Record<string, unknown>>;
}

/** The manifest without the channels that are left out. */
export function shippedManifest<M extends RuntimeManifest>(manifest: M): M {
  const channels = Object.fromEntries(CHANNELS.map((name) => [name, manifest.channels[name]]));
  if (Object.values(channels).includes(undefined)) throw new Error(`the runtime lacks a channel of ${CHANNELS.join(", ")}`);
  return { ...manifest, channels };
}

/** Files of the runtime folder, without its manifest and workerd. */
export const runtimeFiles = ({ modules }: RuntimeManifest): readonly string[] => [
  "worker.js",
  "r2.js",
  ...modules,
  ...CHANNELS.map((name) => `channels/${name}.js`),
];

export const archiveName = (version: string, platform: string): string => `gsv-${version}-${platform}.tar.gz`;
export const cliPackage = ({ name }: Platform): string => `@gsv/cli-${name}`;

/** What an installation says of itself (`gsv update` reads it). */
export const releaseFile = (version: string, platform: string, installedBy: "archive" | "npm"): string =>
  `${JSON.stringify({ format: 1, version, platform, installedBy }, null, 2)}\n`;

const ABOUT = { license: "MIT", description: "Your own AI agent: always reachable, able to use all your machines." } as const;

/** `package.json` of the launcher with the runtime. `platforms`: those of this release. */
export const launcherPackage = (version: string, workerd: string, platforms: readonly Platform[]): object => ({
  name: "gsv",
  version,
  ...ABOUT,
  bin: { gsv: "bin/gsv.cjs" },
  files: ["bin", "runtime", "LICENSE", "NOTICE", "sbom.cdx.json"],
  engines: { node: ">=18" },
  dependencies: { workerd },
  optionalDependencies: Object.fromEntries(platforms.map((platform) => [cliPackage(platform), version])),
});
export const platformPackage = (version: string, platform: Platform): object => ({
  name: cliPackage(platform),
  version,
  ...ABOUT,
  os: [platform.os],
  cpu: [platform.cpu],
  // Programs are built against glibc.
  ...(platform.os === "linux" ? { libc: ["glibc"] } : {}),
  files: ["bin", "release.json", "LICENSE", "NOTICE"],
});

export interface ReleasedFile {
  readonly platform: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}
/** What `gsv update` reads first. */
export const releaseManifest = (
  channel: string,
  version: string,
  publishedAt: number,
  oldestVersion: string,
  files: readonly ReleasedFile[],
): string => `${JSON.stringify({ format: 1, channel, version, publishedAt, oldestVersion, files }, null, 2)}\n`;
