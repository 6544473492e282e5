import { type ComponentType, lazy } from 'react'

export interface View {
  path: string
  View: ComponentType
}

const conversation = () => import('@/conversation/Conversation')

/** All routes. A view is loaded when it is first opened. */
export const routes: readonly View[] = [
  { path: '/', View: lazy(() => conversation().then(({ NewConversation }) => ({ default: NewConversation }))) },
  { path: '/c/:id', View: lazy(() => conversation().then(({ Conversation }) => ({ default: Conversation }))) },
  { path: '/c/:id/compare', View: lazy(() => import('@/conversation/Compare')) },
  { path: '/projects/:id', View: lazy(() => import('@/projects/Project')) },
  { path: '/inbox', View: lazy(() => import('@/inbox/Inbox')) },
  { path: '/settings', View: lazy(() => import('@/settings/Configuration')) },
  { path: '/settings/models', View: lazy(() => import('@/settings/Models')) },
  { path: '/settings/agents', View: lazy(() => import('@/settings/Agents')) },
  { path: '/settings/projects', View: lazy(() => import('@/settings/Projects')) },
  { path: '/settings/tasks', View: lazy(() => import('@/tasks/Tasks')) },
  { path: '/settings/tools', View: lazy(() => import('@/settings/Tools')) },
  { path: '/settings/permissions', View: lazy(() => import('@/settings/Permissions')) },
  { path: '/settings/skills', View: lazy(() => import('@/settings/Skills')) },
  { path: '/settings/memory', View: lazy(() => import('@/settings/Memory')) },
  { path: '/settings/tokens', View: lazy(() => import('@/settings/Tokens')) },
  { path: '/settings/cron', View: lazy(() => import('@/settings/Cron')) },
  { path: '/settings/shares', View: lazy(() => import('@/settings/Shares')) },
  { path: '/settings/import', View: lazy(() => import('@/settings/Import')) },
  { path: '/settings/usage', View: lazy(() => import('@/settings/Usage')) },
  { path: '/settings/about', View: lazy(() => import('@/settings/About')) },
]
