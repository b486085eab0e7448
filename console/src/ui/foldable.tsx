import type { ReactNode } from "react";
import { createContext, useContext, useReducer, useState } from "react";
import styles from "./foldable.module.css";

type Steps = Map<string, number>;

/** How far each part is expanded, by scope and name. Virtual rows lose their own state when they leave the screen. */
const kept = new Map<string, Steps>();
const ScopeContext = createContext<string | null>(null);

/**
 * Identifies the container of expandable parts, such as an entry, so that they are still expanded when it is mounted
 * again.
 */
export const FoldScope = ScopeContext.Provider;

/**
 * Returns how far a part is expanded. 0 means folded. Outside a {@link FoldScope}, this is lost when the part is
 * unmounted.
 */
export function useOpened(name: string): [number, (step: number) => void] {
  const scope = useContext(ScopeContext);
  const [own] = useState<Steps>(() => new Map());
  const [, render] = useReducer((count: number) => count + 1, 0);
  const steps = scope === null ? own : (kept.get(scope) ?? own);
  const open = (step: number) => {
    steps.set(name, step);
    if (scope !== null) kept.set(scope, steps);
    render();
  };
  return [steps.get(name) ?? 0, open];
}

/**
 * Returns the open folds of a list that decides itself which rows to mount, and a function that opens or closes one.
 */
export function useOpenFolds(scope: string): [ReadonlySet<string>, (id: string) => void] {
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set(kept.get(scope)?.keys()));
  const toggle = (id: string) => {
    const next = new Set(opened);
    if (!next.delete(id)) next.add(id);
    kept.set(scope, new Map([...next].map((each) => [each, 1])));
    setOpened(next);
  };
  return [opened, toggle];
}

interface FoldableProps {
  readonly title: ReactNode;
  /** The part's name in its {@link FoldScope}. */
  readonly name?: string;
  readonly children: ReactNode;
}

/** A part that is not mounted while it is folded. */
export function Foldable({ title, name = "", children }: FoldableProps) {
  const [step, setStep] = useOpened(name);
  const isOpen = step > 0;
  return (
    <details
      className={styles.fold}
      open={isOpen}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open !== isOpen) setStep(currentTarget.open ? 1 : 0);
      }}
    >
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  );
}
