import { useQueryClient } from '@tanstack/react-query'
import { type ComponentType, useEffect } from 'react'
import { Redirect, useParams, useSearchParams } from 'wouter'
import { deferred } from '@/app/deferred'
import { prefetchFolder } from '@/data/files'

export interface View {
  path: string
  View: ComponentType
}

const Conversation = deferred(() => import('@/conversation/Conversation'))

const ProjectView = deferred(() => import('@/projects/Project'))

/** A project. If its files are shown, the first folder is fetched while the code of the view is loaded. */
function Project() {
  const client = useQueryClient()
  const { id = '' } = useParams<{ id: string }>()
  const [search] = useSearchParams()
  const isFiles = !search.has('view')
  useEffect(() => {
    if (isFiles) void prefetchFolder(client, decodeURIComponent(id))
  }, [client, id, isFiles])
  return <ProjectView />
}

/** All routes. A view is loaded when it is first opened. */
export const routes: readonly View[] = [
  { path: '/', View: Conversation },
  { path: '/c/:id', View: Conversation },
  { path: '/c/:id/compare', View: deferred(() => import('@/conversation/Compare')) },
  { path: '/projects/:id', View: Project },
  { path: '/inbox', View: deferred(() => import('@/inbox/Inbox')) },
  { path: '/usage', View: deferred(() => import('@/usage/Usage')) },
  { path: '/settings/usage', View: () => <Redirect to="/usage" replace /> },
  { path: '/settings', View: deferred(() => import('@/settings/Configuration')) },
  { path: '/settings/models', View: deferred(() => import('@/settings/Models')) },
  { path: '/settings/agents', View: deferred(() => import('@/settings/Agents')) },
  { path: '/settings/projects', View: deferred(() => import('@/settings/Projects')) },
  { path: '/settings/tasks', View: deferred(() => import('@/tasks/Tasks')) },
  { path: '/settings/tools', View: deferred(() => import('@/settings/Tools')) },
  {
    path: '/settings/permissions',
    View: deferred(() => import('@/settings/Permissions')),
  },
  { path: '/settings/commands', View: deferred(() => import('@/settings/Commands')) },
  { path: '/settings/skills', View: deferred(() => import('@/settings/Skills')) },
  { path: '/settings/memory', View: deferred(() => import('@/settings/Memory')) },
  { path: '/settings/tokens', View: deferred(() => import('@/settings/Tokens')) },
  { path: '/settings/cron', View: deferred(() => import('@/settings/Cron')) },
  { path: '/settings/shares', View: deferred(() => import('@/settings/Shares')) },
  { path: '/settings/import', View: deferred(() => import('@/settings/Import')) },
  { path: '/settings/appearance', View: deferred(() => import('@/settings/Appearance')) },
  { path: '/settings/about', View: deferred(() => import('@/settings/About')) },
]
