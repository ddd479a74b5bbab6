/** The part of the export of traces that is loaded with the first one. */
export { TelemetryExporter } from "./exporter.ts";
