import type { TracerProvider } from "@opentelemetry/api";
import type { Clock } from "../core/clock.ts";
import { systemClock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import { thrownText } from "../core/text.ts";
import { SpanWatcher } from "./spans.ts";
import type { Watcher } from "./watch.ts";

export interface TracingSettings {
  /**
   * The URL of an OpenTelemetry collector, such as `http://localhost:4318`, or `null` if Skein sends no spans itself.
   */
  readonly otlp: string | null;
  readonly serviceName?: string;
  readonly userIds?: boolean;
  readonly clock?: Clock;
  /** How long `close` waits for the collector, in milliseconds. Defaults to 5,000. */
  readonly closeMs?: number;
}

/** Creates spans from the events on the bus. */
export interface Tracing extends Watcher {
  /** Sends the ended spans. Rejects if that fails. */
  flush(): Promise<void>;
  /** Ends the open spans, sends them and shuts down, all within the time limit. */
  close(): Promise<void>;
}

interface Sender {
  readonly provider: TracerProvider;
  flush(): Promise<void>;
  stop(): Promise<void>;
}

/** Optional packages, loaded only if Skein sends spans. */
export interface TracingPackages {
  readonly sdk: typeof import("@opentelemetry/sdk-trace-base");
  readonly exporter: typeof import("@opentelemetry/exporter-trace-otlp-http");
  readonly resources: typeof import("@opentelemetry/resources");
}

const packages = [
  "@opentelemetry/sdk-trace-base",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
];
const scope = "skein";
const defaultCloseMs = 5000;

/**
 * Sends spans to the collector if one is set, otherwise to the tracer provider that the program has registered. If
 * there is neither, loads no packages and returns `null`. Throws `invalid_config` if the URL is invalid or packages are
 * missing.
 */
export async function setUpTracing(
  settings: TracingSettings,
  load: () => Promise<TracingPackages> = loadPackages,
): Promise<Tracing | null> {
  if (settings.otlp === null && !isProviderRegistered()) return null;
  const sender = settings.otlp === null ? null : await openSender(settings.otlp, settings, load);
  const api = await import("@opentelemetry/api");
  const provider = sender?.provider ?? api.trace.getTracerProvider();
  const spans = new SpanWatcher({
    api,
    tracer: provider.getTracer(scope),
    clock: settings.clock ?? systemClock,
    userIds: settings.userIds ?? false,
  });
  return {
    onEvent: spans.onEvent,
    flush: async () => sender?.flush(),
    close: async () => {
      spans.close();
      if (sender !== null) await within(sender.stop(), settings.closeMs ?? defaultCloseMs);
    },
  };
}

/** Looks where the API stores the provider, so the API itself does not have to be loaded. */
function isProviderRegistered(): boolean {
  const api: unknown = Reflect.get(globalThis, Symbol.for("opentelemetry.js.api.1"));
  return typeof api === "object" && api !== null && Reflect.get(api, "trace") !== undefined;
}

async function openSender(
  otlp: string,
  settings: TracingSettings,
  load: () => Promise<TracingPackages>,
): Promise<Sender> {
  const url = tracesUrl(otlp);
  const { sdk, exporter, resources } = await loaded(load);
  const timeoutMillis = settings.closeMs ?? defaultCloseMs;
  const processor = new sdk.BatchSpanProcessor(new exporter.OTLPTraceExporter({ url, timeoutMillis }));
  const provider = new sdk.BasicTracerProvider({
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ "service.name": settings.serviceName ?? scope })),
    spanProcessors: [processor],
  });
  return { provider, flush: () => processor.forceFlush(), stop: () => provider.shutdown() };
}

/** Adds the traces path to a URL without a path. */
function tracesUrl(otlp: string): string {
  const url = URL.parse(otlp);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw notValid("telemetry.otlp must be a URL that starts with http:// or https://", "telemetry.otlp");
  }
  if (url.pathname === "/") url.pathname = "/v1/traces";
  return url.href;
}

async function loaded(load: () => Promise<TracingPackages>): Promise<TracingPackages> {
  try {
    return await load();
  } catch (error) {
    throw notValid(
      `telemetry.otlp is set, but the packages that send spans cannot be loaded (${thrownText(error)})`,
      `it by removing telemetry.otlp, or run: npm install ${packages.join(" ")}`,
    );
  }
}

function notValid(problem: string, places: string): SkeinError {
  return new SkeinError("invalid_config", { problem, others: "", places });
}

async function loadPackages(): Promise<TracingPackages> {
  const [sdk, exporter, resources] = await Promise.all([
    import("@opentelemetry/sdk-trace-base"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);
  return { sdk, exporter, resources };
}

/** An unreachable collector must not delay the shutdown. Spans that it has not accepted are lost. */
async function within(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work.catch(() => undefined), bound]);
  clearTimeout(timer);
}
