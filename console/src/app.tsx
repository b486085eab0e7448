import type { ReactNode } from "react";
import { lazy, Suspense } from "react";
import { Route, Router, Switch, useLocation } from "wouter";
import { GatewayProvider, useAccess } from "./connect/gateway.tsx";
import { OtherUserPage, SignedOutPage } from "./connect/signed-out-page.tsx";
import { Frame } from "./frame.tsx";
import { HomePage } from "./session/home-page.tsx";
import { SessionPage } from "./session/session-page.tsx";
import { useHashLocation } from "./ui/hash-location.ts";
import { Notice } from "./ui/notice.tsx";
import { PageBoundary } from "./ui/page-boundary.tsx";

const DeskPage = lazy(() => import("./desk/desk-page.tsx"));
const FamilyPage = lazy(() => import("./family/family-page.tsx"));
const XrayPage = lazy(() => import("./xray/xray-page.tsx"));
const TreePage = lazy(() => import("./tree/tree-page.tsx"));
const RunsPage = lazy(() => import("./runs/runs-page.tsx"));
const SearchPage = lazy(() => import("./search/search-page.tsx"));
const UsagePage = lazy(() => import("./usage/usage-page.tsx"));
const AccessPage = lazy(() => import("./access/access-page.tsx"));

/**
 * Routes are in the fragment: one build then works under any path of a proxy, and the gateway's access log does not
 * say which session someone reads.
 */
export function App() {
  const access = useAccess();
  if (access.phase === "connecting") return <Notice text="Connecting to the gateway…" isBusy />;
  if (access.phase === "signed-out") return <SignedOutPage {...access} />;
  if (access.phase === "asking") return <OtherUserPage {...access} />;
  return (
    <GatewayProvider client={access.client} feed={access.feed}>
      <Router hook={useHashLocation}>
        <PageBoundaryOfRoute>
          <Frame>
            <PageBoundaryOfRoute>
              <Suspense fallback={<Notice text="Loading…" isBusy />}>
                <Switch>
                  <Route path="/" component={HomePage} />
                  <Route path="/sessions" component={DeskPage} />
                  <Route path="/s/:key/family" component={FamilyPage} />
                  <Route path="/s/:key/context" component={XrayPage} />
                  <Route path="/s/:key/tree" component={TreePage} />
                  <Route path="/s/:key" component={SessionPage} />
                  <Route path="/runs" component={RunsPage} />
                  <Route path="/search" component={SearchPage} />
                  <Route path="/usage" component={UsagePage} />
                  <Route path="/access" component={AccessPage} />
                  <Route>
                    <Notice text="Page not found." />
                  </Route>
                </Switch>
              </Suspense>
            </PageBoundaryOfRoute>
          </Frame>
        </PageBoundaryOfRoute>
      </Router>
    </GatewayProvider>
  );
}

function PageBoundaryOfRoute({ children }: { readonly children: ReactNode }) {
  const [path] = useLocation();
  return <PageBoundary path={path}>{children}</PageBoundary>;
}
