module github.com/threeport/threeport-agent

go 1.26.0

require (
	github.com/go-logr/logr v1.4.4
	github.com/go-resty/resty/v2 v2.17.2
	go.uber.org/goleak v1.3.0
	k8s.io/api v0.37.2
	k8s.io/apiextensions-apiserver v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
	modernc.org/sqlite v1.61.1
	sigs.k8s.io/controller-runtime v0.25.2
)
