import { usePrefetchQuery } from '@tanstack/react-query'
import type { ComponentType } from 'react'
import { Redirect, useParams } from 'wouter'
import { deferred } from '@/app/deferred'
import { folderQuery } from '@/data/files'

export interface View {
  path: string
  View: ComponentType
}

const Conversation = deferred(() => import('@/conversation/Conversation'))

const ProjectView = deferred(() => import('@/projects/Project'))

/** The files of a project. The first folder is fetched while the code of the view is loaded. */
function Project() {
  const { id = '' } = useParams<{ id: string }>()
  usePrefetchQuery(folderQuery(decodeURIComponent(id), '', false))
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
  { path: '/settings/skills', View: deferred(() => import('@/settings/Skills')) },
  { path: '/settings/memory', View: deferred(() => import('@/settings/Memory')) },
  { path: '/settings/tokens', View: deferred(() => import('@/settings/Tokens')) },
  { path: '/settings/cron', View: deferred(() => import('@/settings/Cron')) },
  { path: '/settings/shares', View: deferred(() => import('@/settings/Shares')) },
  { path: '/settings/import', View: deferred(() => import('@/settings/Import')) },
  { path: '/settings/appearance', View: deferred(() => import('@/settings/Appearance')) },
  { path: '/settings/about', View: deferred(() => import('@/settings/About')) },
]
