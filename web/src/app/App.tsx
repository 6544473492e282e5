import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { Route, Switch, useLocation } from 'wouter'
import { Problem } from '@/api/client'
import { LoadBoundary } from '@/app/LoadBoundary'
import { routes } from '@/app/routes'
import { Shell } from '@/app/Shell'
import { NotFound } from '@/ui/NotFound'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) => !(error instanceof Problem) && count < 3,
    },
  },
})

/** The whole page: the shell that all views share, and the view for the current address. */
export function App() {
  const [location] = useLocation()
  return (
    <QueryClientProvider client={queries}>
      <LoadBoundary resetKey="">
        <Shell>
          <LoadBoundary resetKey={location}>
            <Switch>
              {routes.map(({ path, View }) => (
                <Route key={path} path={path} component={View} />
              ))}
              <Route component={NotFound} />
            </Switch>
          </LoadBoundary>
        </Shell>
      </LoadBoundary>
    </QueryClientProvider>
  )
}
