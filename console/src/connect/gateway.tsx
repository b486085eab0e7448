import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useEffectEvent,
  useMemo,
  useState,
  useSyncExternalStore,
} from "react";
import type { ClientState, MethodName, Params, Result } from "skein/client";
import { CallError } from "skein/client";
import type { Access, Gateway } from "./access.ts";
import { accessStore } from "./access.ts";
import type { FeedListener } from "./feed.ts";

const GatewayContext = createContext<Gateway | null>(null);

export function useAccess(): Access {
  return useSyncExternalStore(accessStore.subscribe, accessStore.state);
}

export function GatewayProvider({ client, feed, children }: Gateway & { readonly children: ReactNode }) {
  const gateway = useMemo(() => ({ client, feed }), [client, feed]);
  const [queries] = useState(
    () =>
      new QueryClient({
        defaultOptions: {
          queries: {
            staleTime: 5000,
            // The gateway might be on this machine, so the browser's network state is ignored.
            networkMode: "always",
            retry: (count, error) => count < 2 && error instanceof CallError && error.retryable,
          },
        },
      }),
  );
  // Agents, models, lanes, budgets and access depend on the configuration, so every result is read again.
  useEffect(
    () => feed.listen(({ event }) => void (event === "gateway.reloaded" && queries.invalidateQueries())),
    [feed, queries],
  );
  return (
    <GatewayContext value={gateway}>
      <QueryClientProvider client={queries}>{children}</QueryClientProvider>
    </GatewayContext>
  );
}

export function useGateway(): Gateway {
  const gateway = useContext(GatewayContext);
  if (gateway === null) throw new Error("There is no gateway above this component.");
  return gateway;
}

export function useConnectionState(): ClientState {
  const { client } = useGateway();
  return useSyncExternalStore(
    (changed) => client.onState(changed),
    () => client.state,
  );
}

/** Whether the token is allowed to call a method. Views use this to hide actions that would be rejected. */
export function useMay(method: MethodName): boolean {
  return useGateway().client.hello.methods.includes(method);
}

/**
 * Returns a function that calls a method that changes something. While the gateway is offline, the function rejects.
 * The client would otherwise hold the call and make it when the user no longer expects it.
 */
export function useChange() {
  const { client } = useGateway();
  return useCallback(
    async <M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> => {
      if (client.state !== "open") throw new Error("Nothing was changed: the gateway is offline.");
      return client.call(method, params);
    },
    [client],
  );
}

export type Change = ReturnType<typeof useChange>;

const offlineProps = {
  "aria-disabled": true,
  title: "Not possible right now: the gateway is offline.",
  onClick: (event: { preventDefault(): void }) => event.preventDefault(),
} as const;

/**
 * While the gateway is offline, returns props that disable a button that makes a change. The button keeps the focus.
 */
export function useOffline(): typeof offlineProps | null {
  return useConnectionState() === "open" ? null : offlineProps;
}

export function useEvents(listener: FeedListener): void {
  const { feed } = useGateway();
  const onEvent = useEffectEvent(listener);
  useEffect(() => feed.listen((event) => onEvent(event)), [feed]);
}

interface CallOptions {
  readonly isEnabled?: boolean;
  readonly staleMs?: number;
  readonly keepsPrevious?: boolean;
}

/**
 * Returns the result of a read method, cached by its params. As long as there is a result, even an outdated one,
 * `error` is `null`.
 */
export function useCall<M extends MethodName>(method: M, params: Params<M>, options: CallOptions = {}) {
  const { client } = useGateway();
  const { isEnabled = true, staleMs, keepsPrevious = false } = options;
  const { data, error, isFetching, isPending, isPlaceholderData, refetch } = useQuery<Result<M>, Error>({
    queryKey: [method, params],
    queryFn: ({ signal }) => client.call(method, params, { signal }),
    enabled: isEnabled,
    ...(staleMs === undefined ? {} : { staleTime: staleMs }),
    ...(keepsPrevious ? { placeholderData: (previous: Result<M> | undefined) => previous } : {}),
  } as Parameters<typeof useQuery<Result<M>, Error>>[0]);
  return {
    data,
    error: data === undefined ? error : null,
    isFetching,
    isPending,
    isPlaceholderData,
    refetch,
  };
}

/** Remedies that are written for programs, matched by their beginning, and the text that a page shows instead. */
const pageRemedies: readonly (readonly [start: string, ours: string])[] = [
  ["Use sessions.list ", "It may have been deleted, or it may belong to another user."],
  ["Omit the user, ", "To open this address, sign in as its user."],
];

/** Describes what went wrong in sentences that end with a period. */
export function errorText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const remedy = error instanceof CallError ? (error.remedy ?? "") : "";
  const ours = pageRemedies.find(([start]) => remedy.startsWith(start))?.[1];
  const text = ours === undefined ? message : `${message.slice(0, -remedy.length)}${ours}`;
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
