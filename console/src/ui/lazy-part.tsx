import type { ComponentType } from "react";
import { lazy } from "react";

/** Parts that could not be loaded. Calling a function makes the next render load its part again. */
const failed = new Set<() => void>();

/** Allows parts that could not be loaded to be loaded again. */
export function retryFailedParts(): void {
  for (const retry of failed) retry();
  failed.clear();
}

/** A part of the console that is loaded when it is shown. React's `lazy` would never repeat a failed load. */
export function lazyPart<Props extends object>(
  load: () => Promise<{ readonly default: ComponentType<Props> }>,
): ComponentType<Props> {
  const attempt = () =>
    lazy(() =>
      load().catch((cause: unknown) => {
        failed.add(() => {
          Part = attempt();
        });
        throw new Error("part of it could not be loaded from the gateway.", { cause });
      }),
    );
  let Part: ComponentType<Props> = attempt() as ComponentType<Props>;
  return function LazyPart(props: Props) {
    return <Part {...props} />;
  };
}
